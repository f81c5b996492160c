import Testing

@testable import Curl

@Suite("The watchdog's judgement")
struct StallWatchTests {
    private let then = MonotonicTime.now()

    @Test("one look alone decides nothing: the bytes may have come at that very moment")
    func oneLook() {
        var exchange = StallWatch()
        #expect(exchange.look(lastActivity: then, hasWork: true) == .none)
        #expect(exchange.look(lastActivity: then.advanced(milliseconds: 1), hasWork: true) == .none)
    }

    @Test("a standstill that two looks find is resumed, and ended where that does not help")
    func resumeAndEnd() {
        var exchange = StallWatch()
        let verdicts = (0..<4).map { _ in exchange.look(lastActivity: then, hasWork: true) }
        #expect(verdicts == [.none, .resume, .resume, .end])
    }

    @Test("without work between two looks the standstill begins anew")
    func interrupted() {
        var exchange = StallWatch()
        #expect(exchange.look(lastActivity: then, hasWork: true) == .none)
        #expect(exchange.look(lastActivity: then, hasWork: false) == .none)
        #expect(exchange.look(lastActivity: then, hasWork: true) == .none)
        #expect(exchange.look(lastActivity: then, hasWork: true) == .resume)
    }
}
