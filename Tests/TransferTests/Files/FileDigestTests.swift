import Testing

@testable import Transfer

@Suite("Digests of files")
struct FileDigestTests {
    private func verify(_ digest: FileDigest, _ text: String) throws {
        var running = RunningDigest(digest.algorithm)
        for piece in stride(from: 0, to: text.utf8.count, by: 999) {
            Array(text.utf8)[piece..<min(piece + 999, text.utf8.count)].withUnsafeBytes { running.update($0) }
        }
        try digest.evaluate(running)
    }

    @Test(
        "known digests agree, and of other bytes they do not",
        arguments: [
            (.md5, "900150983cd24fb0d6963f7d28e17f72"), (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                .sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                    + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            ),
        ] as [(FileDigest.Algorithm, String)])
    func known(algorithm: FileDigest.Algorithm, hex: String) throws {
        try verify(FileDigest(algorithm: algorithm, hex: hex), "abc")
        #expect { try verify(FileDigest(algorithm: algorithm, hex: hex), "abd") } throws: {
            ($0 as? TransferError)?.code == .checksumMismatch
        }
    }

    @Test("nothing has a digest too, and what comes piece by piece has that of the whole")
    func sizes() throws {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        try verify(FileDigest(algorithm: .sha256, hex: empty), "")
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        try verify(FileDigest(algorithm: .sha256, hex: million), String(repeating: "a", count: 1_000_000))
        #expect(throws: TransferError.self) {
            try verify(FileDigest(algorithm: .sha256, hex: million), String(repeating: "a", count: 1_000_001))
        }
    }
}
