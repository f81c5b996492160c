import Testing

@testable import Curl

struct WireOverheadTests {
    /// Returns the MiB that a peer sends before it is found excessive; `nil` if it is not within 128 MiB.
    private func mebibytes(piece: Int, wire: UInt64) -> UInt64? {
        var overhead = WireOverhead()
        var received: UInt64 = 1_000
        while received < 128 << 20 {
            received += wire
            if overhead.record(piece), overhead.isExcessive(received: received) { return received >> 20 }
        }
        return nil
    }

    @Test("A42: a peer that sends 60 KB for each byte of a body is found after less than 100 MiB")
    func excessive() throws {
        let found = try #require(mebibytes(piece: 1, wire: 60_000))
        #expect(found >= 64 && found < 100)
    }

    @Test("single bytes in chunks and records of their own are never excessive")
    func honest() {
        // `1 CR LF x CR LF` in a record of TLS 1.3.
        #expect(mebibytes(piece: 1, wire: 28 + 6) == nil)
        #expect(mebibytes(piece: 64, wire: 5_000) == nil)
    }
}
