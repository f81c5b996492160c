import TestSupport
import Testing

@testable import Curl

@Suite("Pausing an exchange")
struct ExchangePauseTests {
    private static let connectTimeout = 60_000

    /// Fetches `url`, pauses at the first piece of its body and, if `goesOn`, resumes after 50 ms.
    private func fetch(
        _ url: String, on loop: TransferLoop, goesOn: Bool = true, verdict: BodyVerdict = .accepted,
        holdsPause: Bool = true
    ) async -> ExchangeRecord {
        await withCheckedContinuation { continuation in
            loop.post { core in
                let handler = RecordingHandler(pauses: 1, verdict: verdict, holdsPause: holdsPause) { exchange in
                    guard goesOn else { return }
                    _ = core.after(milliseconds: 50) { [id = exchange.id] in core.exchange(id)?.unpause() }
                } ended: {
                    continuation.resume(returning: $0)
                }
                _ = try? core.start(handler: handler) { (exchange: Exchange) throws(CurlError) in
                    try exchange.easy.set(.url, to: url)
                    try exchange.easy.set(.proxy, to: "")
                    // The time that libcurl would wait if it forgot the exchange.
                    try exchange.easy.set(.connectTimeout, to: Self.connectTimeout)
                }
            }
        }
    }

    @Test("bytes that libcurl kept back and that are refused end the exchange at once")
    func refusalOfKeptBytes() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 4_000))]])
        let faults = LoopFaults()
        let loop = try TransferLoop(name: "test-refusal", faults: faults)
        defer { loop.stop() }
        let begin = ContinuousClock.now
        let record = await fetch(server.url("/f"), on: loop, verdict: .refused)
        // CURLE_WRITE_ERROR
        #expect(record.ending == "failed 23")
        #expect(begin.duration(to: .now) < .seconds(10))
        #expect(faults.count == 0)
    }

    @Test("an exchange that is paused without a reason is counted as a fault and goes on")
    func pauseWithoutReason() async throws {
        let resource = Resource(size: 40_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let faults = LoopFaults(isExpected: true)
        let loop = try TransferLoop(name: "test-forgotten", faults: faults)
        defer { loop.stop() }
        let record = await fetch(server.url("/f"), on: loop, goesOn: false, holdsPause: false)
        #expect(record.ending == "finished")
        #expect(record.body == resource.bytes(0..<resource.size))
        #expect(faults.count == 1)
    }

    @Test("work posted to a loop that was stopped is refused")
    func postAfterStop() throws {
        let loop = try TransferLoop(name: "test-stopped")
        loop.stop()
        #expect(!loop.post { _ in })
    }
}
