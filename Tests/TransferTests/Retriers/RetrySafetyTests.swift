import HTTPTypes
import Testing

@testable import Transfer

@Suite("Which requests may be sent again")
struct RetrySafetyTests {
    private typealias Step = RetrySafety.Step

    private func allows(_ safety: RetrySafety) -> Bool { safety.allows(RetrySafety.idempotent) }

    @Test(
        "idempotent methods always", arguments: [.get, .head, .put, .delete, .options, .trace] as [HTTPRequest.Method])
    func idempotent(method: HTTPRequest.Method) {
        #expect(allows(RetrySafety(method: method, steps: [Step(isSent: true, status: 500)])))
        #expect(allows(RetrySafety(method: method, steps: [Step(isSent: true)])))
    }

    @Test("others where no byte went out", arguments: [.post, .patch, .init("MKCOL")] as [HTTPRequest.Method?])
    func unsent(method: HTTPRequest.Method?) throws {
        let method = try #require(method)
        #expect(allows(RetrySafety(method: method)))
        #expect(allows(RetrySafety(method: method, steps: [Step(isSent: false)])))
        #expect(!allows(RetrySafety(method: method, steps: [Step(isSent: true)])))
        #expect(allows(RetrySafety(method: method, steps: [Step(isSent: true)], hasUnsentBody: true)))
    }

    @Test("others where the server says that it did not act", arguments: 400..<600)
    func status(_ status: Int) {
        let safety = RetrySafety(method: .post, steps: [Step(isSent: true, status: status)], hasUnsentBody: true)
        #expect(allows(safety) == [408, 425, 429, 503].contains(status))
    }

    @Test("what came before must not have been acted on either", arguments: [301, 302, 303, 307, 308, 401, 407, 200])
    func steps(_ first: Int) {
        let safety = RetrySafety(method: .post, steps: [Step(isSent: true, status: first), Step(isSent: false)])
        #expect(allows(safety) == [307, 308, 401, 407].contains(first))
    }

    @Test("the caller may know better")
    func told() {
        let safety = RetrySafety(method: .post, steps: [Step(isSent: true, status: 500)])
        #expect(safety.allows([.post]))
        #expect(!safety.allows([.get]))
    }

    @Test("failures count in a row, and what is kept starts them anew")
    func record() {
        var record = RetryRecord()
        record.fail(kept: 100, attempt: 0)
        #expect(record.failures == 1)
        record.fail(kept: 100, attempt: 1)
        record.fail(kept: 50, attempt: 2)
        #expect(record.failures == 3)
        record.refresh(kept: 100)
        record.refresh(kept: 100)
        #expect(record.refreshes == 2)
        record.fail(kept: 101, attempt: 3)
        #expect(record.failures == 1 && record.refreshes == 0)
    }
}
