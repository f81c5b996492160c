import Testing

@testable import Transfer

@Suite("Progress as text")
struct TransferProgressTests {
    @Test(
        "a snapshot prints its counts and its activity",
        arguments: [
            (12, 24, "12 of 24 bytes (50 %), transferring"), (1, nil, "1 byte, transferring"),
            (0, 0, "0 of 0 bytes (100 %), transferring"), (.min, 1, "\(Int64.min) of 1 byte (0 %), transferring"),
        ] as [(Int64, Int64?, String)])
    func snapshot(completed: Int64, total: Int64?, text: String) {
        let snapshot = TransferProgress.Snapshot(completedBytes: completed, totalBytes: total, phase: .transferring)
        #expect("\(snapshot)" == text)
    }

    @Test("progress prints its present counts")
    func progress() {
        #expect("\(TransferProgress(completedBytes: 3, totalBytes: 4))" == "3 of 4 bytes (75 %), connecting")
    }
}
