import Curl
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

/// The transitions of a transaction's state machine as a table: every event in every state.
@Suite("The transitions of a transaction's state machine")
struct TransactionTransitionTests {
    private typealias Machine = TransactionStateMachine

    private static let basic = "WWW-Authenticate: Basic realm=\"r\""
    private static let credential = Credential(user: "u", password: "p")
    private static let shown = ServerTrust(host: "own", certificates: ["c"], isChainValid: true)
    private static let fault = TransferError(.stalled, "r")

    // MARK: States

    /// The ways into every state, by the state's name.
    private static let ways: [(String, @Sendable (inout Machine) -> Void)] = [
        ("idle", { _ in }),
        ("requested", { _ = $0.start() }),
        ("trust?", { ask(&$0, late: false) { $0.certificatesReceived(shown, asksDelegate: true) } }),
        ("trust? late", { ask(&$0) { $0.certificatesReceived(shown, asksDelegate: true) } }),
        ("trust? ended", { ask(&$0, ended: true) { $0.certificatesReceived(shown, asksDelegate: true) } }),
        ("redirect? late", { ask(&$0) { $0.headReceived(moved, asksAboutRedirects: true) } }),
        ("redirect? ended", { ask(&$0, ended: true) { $0.headReceived(moved, asksAboutRedirects: true) } }),
        ("challenge?", { ask(&$0, late: false) { receive(head(401, [basic]), &$0) } }),
        ("challenge? late", { ask(&$0) { receive(head(401, [basic]), &$0) } }),
        ("response? late", { ask(&$0) { handle(.ask, &$0) } }),
        ("response? ended", { ask(&$0, ended: true) { handle(.ask, &$0) } }),
        (
            "delivering",
            { machine in
                _ = machine.start()
                _ = receive(head(200), &machine)
            }
        ),
        ("receiving", { _ = handle(.receive, &$0) }),
        (
            "stored",
            { machine in
                _ = machine.start()
                _ = machine.storedResponseFound(head(200))
                _ = machine.headHandled(.receive)
            }
        ),
        (
            "discarding, send",
            { machine in
                _ = machine.start()
                _ = receive(moved, &machine)
            }
        ),
        (
            "discarding, fail",
            { machine in
                _ = machine.start()
                _ = receive(head(302), &machine)
            }
        ),
        ("discarding, end", { _ = handle(.discard, &$0) }),
        ("failing", { _ = handle(.refuse(TransferError(.tooLarge, "r")), &$0) }),
        (
            "ended",
            { machine in
                _ = handle(.receive, &machine)
                _ = machine.exchangeEnded(Machine.ExchangeEnd(cause: .finished))
            }
        ),
    ]

    private static var moved: ResponseHead { head(302, ["Location: /b"]) }

    private static func receive(_ head: ResponseHead, _ machine: inout Machine) -> TransactionAction {
        machine.headReceived(head, asksAboutRedirects: false)
    }

    /// Handles the head of a final response.
    private static func handle(_ disposition: HeadDisposition, _ machine: inout Machine) -> TransactionAction {
        if !machine.isUnderWay { _ = machine.start() }
        _ = receive(head(200), &machine)
        return machine.headHandled(disposition)
    }

    /// Asks a question that is not answered at once, and lets its exchange end.
    private static func ask(
        _ machine: inout Machine, late: Bool = true, ended: Bool = false,
        _ asking: (inout Machine) -> TransactionAction
    ) {
        _ = machine.start()
        _ = asking(&machine)
        if late { _ = machine.answerDelayed(machine.questions) }
        if ended { _ = machine.exchangeEnded(Machine.ExchangeEnd(cause: .stalled, error: fault)) }
    }

    private static func machine(_ enter: (inout Machine) -> Void) -> Machine {
        var request = TransferRequest(url: "http://own/a")
        request.method = .get
        var machine = Machine(request, Machine.Configuration(maximumRedirects: 2))
        enter(&machine)
        return machine
    }

    // MARK: Events

    private typealias Event = @Sendable (inout Machine) -> String

    private static func action(_ event: @escaping @Sendable (inout Machine) -> TransactionAction) -> Event {
        { event(&$0).words }
    }

    private static let requests: [(String, Event)] = [
        ("start", action { $0.start() }),
        ("stored found", action { $0.storedResponseFound(head(200)) }),
        (
            "passed to the network",
            { machine in
                machine.passedToNetwork()
                return "-"
            }
        ),
        ("sending failed", action { $0.sendingFailed(fault) }),
        ("cancel", action { $0.cancel(.cancelled) }),
    ]

    private static let heads: [(String, Event)] = [
        ("head 200", action { receive(head(200), &$0) }),
        ("head 302", action { receive(moved, &$0) }),
        ("head 302, asked", action { $0.headReceived(moved, asksAboutRedirects: true) }),
        ("head 302 to nowhere", action { receive(head(302), &$0) }),
        ("head 417", action { receive(head(417), &$0) }),
        (
            "head 417 to Expect",
            action { machine in
                machine.prepared(expecting: .overHTTP1)
                return receive(head(417), &machine)
            }
        ),
        ("head 401", action { receive(head(401), &$0) }),
        ("head 401 Basic", action { receive(head(401, [basic]), &$0) }),
        ("handled: receive", action { $0.headHandled(.receive) }),
        ("handled: discard", action { $0.headHandled(.discard) }),
        ("handled: ask", action { $0.headHandled(.ask) }),
        ("handled: refuse", action { $0.headHandled(.refuse(fault)) }),
        ("trailer", action { $0.trailerReceived(10) }),
        ("endless trailer", action { $0.trailerReceived(ResponseHeadParser.maximumLength + 1) }),
    ]

    private static let bodies: [(String, Event)] = [
        ("bytes", { $0.bytesReceived(1_000).words }),
        ("many bytes", { $0.bytesReceived(Machine.discardLimit + 1).words }),
        (
            "bytes in a pause",
            { machine in
                machine.pause(.full)
                return machine.bytesReceived(1_000).words
            }
        ),
        ("bytes to send", { $0.bytesRequested().words }),
        ("refuse", action { $0.refuse(TransferError(.diskFull, "r")) }),
        ("leave shared", action { $0.leaveSharedConnection(inCallback: true) }),
        (
            "pause, resume",
            action { machine in
                machine.pause(.full)
                return machine.resume(.full)
            }
        ),
        (
            "resume one of two",
            action { machine in
                machine.pause([.full, .rate])
                return machine.resume(.full)
            }
        ),
        ("resume", action { $0.resume(.full) }),
    ]

    private static let questions: [(String, Event)] = [
        ("certificates", action { $0.certificatesReceived(shown, asksDelegate: false) }),
        ("certificates, asked", action { $0.certificatesReceived(shown, asksDelegate: true) }),
        ("trusted", action { $0.trustEvaluated(shown, isTrusted: true) }),
        ("not trusted", action { $0.trustEvaluated(shown, isTrusted: false) }),
        ("no answer yet", action { $0.answerDelayed($0.questions) }),
        ("answer: yes", action { answer(&$0, .useCredential, isYes: true) }),
        ("answer: no", action { answer(&$0, .rejectProtectionSpace, isYes: false) }),
        ("answer: default", action { answer(&$0, .performDefaultHandling, isYes: true) }),
        ("answer: cancel", action { answer(&$0, .cancelAuthenticationChallenge, isYes: false) }),
        ("answer: of another kind", action { $0.answered($0.questions, .cache(nil)) }),
        ("answer: to another", action { $0.answered($0.questions + 1, .redirect(nil)) }),
    ]

    private static func answer(
        _ machine: inout Machine, _ disposition: ChallengeDisposition, isYes: Bool
    ) -> TransactionAction {
        guard let pending = machine.pendingQuestion else {
            return machine.answered(machine.questions, .response(.allow))
        }
        let decision: Decision =
            switch pending.question {
            case .redirect(_, let request, _): .redirect(isYes ? request : nil)
            case .challenge, .trust: .challenge(disposition, credential)
            case .response: .response(isYes ? .allow : .cancel)
            }
        return machine.answered(pending.number, decision)
    }

    private static let ends: [(String, Event)] = [
        ("finished", action { $0.exchangeEnded(Machine.ExchangeEnd(cause: .finished)) }),
        ("stalled", action { $0.exchangeEnded(Machine.ExchangeEnd(cause: .stalled, error: fault)) }),
        (
            "stalled, HTTP/2",
            action { $0.exchangeEnded(Machine.ExchangeEnd(cause: .stalled, error: fault, offersHTTP2: true)) }
        ),
        ("HTTP/2 error", action { $0.exchangeEnded(failed(.http2Stream)) }),
        (
            "certificate refused",
            action { machine in
                var end = failed(.peerFailedVerification)
                end.mayForgive = true
                return machine.exchangeEnded(end)
            }
        ),
        ("no exchange", action { $0.exchangeWasAbsent() }),
    ]

    private static func failed(_ code: CurlError.Code) -> Machine.ExchangeEnd {
        Machine.ExchangeEnd(cause: .failed(code), error: fault)
    }

    private static func table() -> [String] {
        (requests + heads + bodies + questions + ends).map { name, event in
            let cells = ways.map { _, enter -> String in
                var machine = machine(enter)
                let before = machine.state.words
                let action = event(&machine)
                if let violation = machine.violation { return "\(action): \(violation)" }
                let after = machine.state.words
                return before == after ? action : "\(action) > \(after)"
            }
            return ([name] + cells).joined(separator: " | ")
        }
    }

    @Test("every event, in every state")
    func events() {
        let found = Self.table()
        for (row, expected) in zip(found, Self.expected) { #expect(row == expected) }
        #expect(found.count == Self.expected.count)
        if found != Self.expected { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    /// The columns are the states, in their order. After `>` stands the next state where it is another.
    private static let expected: [String] = [
        "start | send /a > requested | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | send /a > requested",
        "stored found | - | head 200 > delivering now | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | head 200 > delivering now",
        "passed to the network | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | -",
        "sending failed | - | end stalled > ended | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | -",
        "cancel | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | cancel > failing cancelled | -",
        "head 200 | refuse | head 200 > delivering now | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 302 | refuse | - > discarding, send | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 302, asked | refuse | ask redirect > redirect? now | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 302 to nowhere | refuse | - > discarding, fail | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 417 | refuse | head 417 > delivering now | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 417 to Expect | refuse | omit Expect > discarding, send | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 401 | refuse | head 401 > delivering now | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "head 401 Basic | refuse | ask challenge > challenge? now | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "handled: receive | - | - | - | - | - | - | - | - | - | - | - | - > receiving | - | - | - | - | - | - | -",
        "handled: discard | - | - | - | - | - | - | - | - | - | - | - | - > discarding, end | - | - | - | - | - | - | -",
        "handled: ask | - | - | - | - | - | - | - | - | - | - | - | ask response > response? now | - | - | - | - | - | - | -",
        "handled: refuse | - | - | - | - | - | - | - | - | - | - | - | refuse > failing stalled | - | - | - | - | - | - | -",
        "trailer | refuse | refuse | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | refuse | refuse",
        "endless trailer | refuse | refuse | refuse > failing too-large | refuse > failing too-large | refuse | refuse > failing too-large | refuse | refuse > failing too-large | refuse > failing too-large | refuse > failing too-large | refuse | refuse > failing too-large | refuse > failing too-large | end too-large > ended | refuse > failing too-large | refuse > failing too-large | refuse > failing too-large | refuse | refuse",
        "bytes | refuse | refuse | pause | pause | pause | pause | pause | pause | pause | pause | pause | refuse | pass | pass | discard | discard | discard | refuse | refuse",
        "many bytes | refuse | refuse | pause | pause | pause | pause | pause | pause | pause | pause | pause | refuse | pass | pass | refuse | refuse | refuse | refuse | refuse",
        "bytes in a pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause | pause",
        "bytes to send | refuse | pass | pause | pause | pause | pause | pause | pause | pause | pause | pause | pass | pass | pass | pass | pass | pass | refuse | refuse",
        "refuse | refuse | refuse > failing disk-full | refuse > failing disk-full | refuse > failing disk-full | refuse | refuse > failing disk-full | refuse | refuse > failing disk-full | refuse > failing disk-full | refuse > failing disk-full | refuse | refuse > failing disk-full | refuse > failing disk-full | end disk-full > ended | refuse > failing disk-full | refuse > failing disk-full | refuse > failing disk-full | refuse | refuse",
        "leave shared | refuse | refuse > failing cancelled | refuse > failing cancelled | refuse > failing cancelled | refuse | refuse > failing cancelled | refuse | refuse > failing cancelled | refuse > failing cancelled | refuse > failing cancelled | refuse | refuse > failing cancelled | refuse > failing cancelled | end cancelled > ended | refuse > failing cancelled | refuse > failing cancelled | refuse > failing cancelled | refuse | refuse",
        "pause, resume | - | resume | - | - | - | - | - | - | - | - | - | resume | resume | resume | resume | resume | resume | resume | -",
        "resume one of two | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | -",
        "resume | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | -",
        "certificates | refuse | evaluate | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "certificates, asked | refuse | ask trust > trust? now | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "trusted | refuse | - | - > requested | resume > discarding, send | send /a > requested | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "not trusted | refuse | refuse > failing tls | refuse > failing tls | cancel > failing tls | end tls > ended | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "no answer yet | - | - | refuse > trust? waiting | - | - | - | - | - > challenge? waiting | - | - | - | - | - | - | - | - | - | - | -",
        "answer: yes | - | - | - > requested | resume > discarding, send | send /a > requested | resume > discarding, send | send /b > requested | - > discarding, send | resume > discarding, send | allow > delivering waiting | allow > delivering ended stalled | - | - | - | - | - | - | - | -",
        "answer: no | - | - | refuse > failing tls | cancel > failing tls | end tls > ended | head 302 > delivering waiting | head 302 > delivering ended stalled | head 401 > delivering now | head 401 > delivering waiting | disallow > delivering waiting | disallow > delivering ended stalled | - | - | - | - | - | - | - | -",
        "answer: default | - | - | evaluate | evaluate | evaluate | resume > discarding, send | send /b > requested | head 401 > delivering now | head 401 > delivering waiting | allow > delivering waiting | allow > delivering ended stalled | - | - | - | - | - | - | - | -",
        "answer: cancel | - | - | refuse > failing cancelled | cancel > failing cancelled | end cancelled > ended | head 302 > delivering waiting | head 302 > delivering ended stalled | refuse > failing cancelled | cancel > failing cancelled | disallow > delivering waiting | disallow > delivering ended stalled | - | - | - | - | - | - | - | -",
        "answer: of another kind | - | - | evaluate | evaluate | evaluate | head 302 > delivering waiting | head 302 > delivering ended stalled | head 401 > delivering now | head 401 > delivering waiting | allow > delivering waiting | allow > delivering ended stalled | - | - | - | - | - | - | - | -",
        "answer: to another | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | -",
        "finished | - | end well > ended | - > trust? ended well | - > trust? ended well | - > trust? ended well | - > redirect? ended well | - > redirect? ended well | - > challenge? ended well | - > challenge? ended well | - > response? ended well | - > response? ended well | end well > ended | end well > ended | end well > ended | send /b > requested | end http > ended | end well > ended | end too-large > ended | -",
        "stalled | - | end stalled > ended | - > trust? ended stalled | - > trust? ended stalled | - | - > redirect? ended stalled | - | - > challenge? ended stalled | - > challenge? ended stalled | - > response? ended stalled | - | end stalled > ended | end stalled > ended | end stalled > ended | send /b > requested | end http > ended | end well > ended | end too-large > ended | -",
        "stalled, HTTP/2 | - | avoid HTTP/2, send /a | - > trust? ended stalled | - > trust? ended stalled | - | - > redirect? ended stalled | - | - > challenge? ended stalled | - > challenge? ended stalled | - > response? ended stalled | - | end stalled > ended | end stalled > ended | end stalled > ended | send /b > requested | end http > ended | end well > ended | end too-large > ended | -",
        "HTTP/2 error | - | avoid HTTP/2, send /a | avoid HTTP/2, - > trust? ended stalled | avoid HTTP/2, - > trust? ended stalled | avoid HTTP/2, - | avoid HTTP/2, - > redirect? ended stalled | avoid HTTP/2, - | avoid HTTP/2, - > challenge? ended stalled | avoid HTTP/2, - > challenge? ended stalled | avoid HTTP/2, - > response? ended stalled | avoid HTTP/2, - | avoid HTTP/2, end stalled > ended | avoid HTTP/2, end stalled > ended | avoid HTTP/2, end stalled > ended | avoid HTTP/2, send /b > requested | avoid HTTP/2, end http > ended | avoid HTTP/2, end well > ended | end too-large > ended | -",
        "certificate refused | - | send /a | - > trust? ended stalled | - > trust? ended stalled | - | - > redirect? ended stalled | - | - > challenge? ended stalled | - > challenge? ended stalled | - > response? ended stalled | - | end stalled > ended | end stalled > ended | end stalled > ended | send /b > requested | end http > ended | end well > ended | end too-large > ended | -",
        "no exchange | - | end well > ended | - > trust? ended well | - > trust? ended well | - > trust? ended well | - > redirect? ended well | - > redirect? ended well | - > challenge? ended well | - > challenge? ended well | - > response? ended well | - > response? ended well | end well > ended | end well > ended | end well > ended | send /b > requested | end http > ended | end well > ended | end too-large > ended | -",
    ]

    // MARK: Single rules

    @Test("a redirect beyond the limit fails, and resets no count before the request is restarted")
    func redirectLimit() {
        var machine = Self.machine { _ in }
        _ = machine.start()
        for _ in 0..<2 {
            #expect(Self.receive(Self.moved, &machine).words == "-")
            #expect(machine.exchangeEnded(Machine.ExchangeEnd(cause: .finished)).words == "send /b")
        }
        #expect(Self.receive(Self.moved, &machine).words == "-")
        #expect(
            machine.exchangeEnded(Machine.ExchangeEnd(cause: .finished)).words == "end too-many-redirects")
        machine.restart(from: TransferRequest(url: "http://own/a"))
        #expect(machine.start().words == "send /a" && machine.redirects == 0 && !machine.isShortcut)
    }

    @Test("a request sent again goes to the URL of the last redirect")
    func shortcut() {
        var machine = Self.machine { _ in }
        _ = machine.start()
        _ = Self.receive(Self.moved, &machine)
        _ = machine.exchangeEnded(Machine.ExchangeEnd(cause: .finished))
        #expect(!machine.isShortcut)
        _ = machine.sendingFailed(Self.fault)
        #expect(machine.start().words == "send /b" && machine.isShortcut)
    }

    @Test("a request to an unreadable URL ends, the first time and after another request")
    func unreadableURL() {
        var machine = Machine(TransferRequest(url: "http://own:x/"), Machine.Configuration())
        #expect(machine.start().words == "end invalid" && !machine.isUnderWay)
        var other = Self.machine { machine in
            _ = machine.start()
            _ = machine.exchangeEnded(Machine.ExchangeEnd(cause: .stalled, error: Self.fault))
        }
        other.restart(from: TransferRequest(url: "http://own:x/"))
        #expect(other.start().words == "end invalid" && !other.isUnderWay)
    }

    @Test("a certificate that was accepted too late is accepted at once by the next exchange")
    func lateTrust() {
        var machine = Self.machine { machine in
            Self.ask(&machine) { $0.certificatesReceived(Self.shown, asksDelegate: true) }
        }
        #expect(machine.answered(1, .challenge(.useCredential, nil)).words == "resume")
        #expect(machine.exchangeEnded(Self.failed(.abortedByCallback)).words == "send /a")
        #expect(machine.certificatesReceived(Self.shown, asksDelegate: true).words == "-")
        var other = Self.shown
        other.certificates = ["d"]
        #expect(machine.certificatesReceived(other, asksDelegate: true).words == "ask trust")
    }

    @Test("A25: a refused connection leads to the same request on a new one, once at an origin and before a head only")
    func refusedConnection() throws {
        var machine = Self.machine { _ = $0.start() }
        var end = Self.failed(.abortedByCallback)
        end.refusedConnection = true
        let url = try #require(machine.url)
        #expect(!machine.connection.avoidsReuse(at: url))
        #expect(machine.exchangeEnded(end).words == "send /a")
        #expect(machine.awaitsHead && machine.connection.avoidsReuse(at: url))
        #expect(machine.exchangeEnded(end).words == "end stalled")
        var cancelled = Self.machine { _ = $0.start() }
        _ = cancelled.cancel(.cancelled)
        #expect(cancelled.exchangeEnded(end).words == "end cancelled")
    }

    @Test("F86: a connection with input leads to the same request on a new one, once before each response")
    func unaskedInput() throws {
        var machine = Self.machine { _ = $0.start() }
        var end = Self.failed(.abortedByCallback)
        end.hasUnaskedInput = true
        let url = try #require(machine.url)
        #expect(machine.exchangeEnded(end).words == "send /a")
        #expect(machine.awaitsHead && machine.connection.avoidsReuse(at: url))
        #expect(machine.exchangeEnded(end).words == "end stalled")
        // A response shows that the new connection is in order: later requests may use it.
        _ = machine.start()
        _ = machine.headReceived(head(200), asksAboutRedirects: false)
        #expect(!machine.connection.avoidsReuse(at: url))
    }

    @Test("a stream that is left during its pause is cancelled, and goes on over a connection of its own")
    func leftLater() {
        var machine = Self.machine { machine in
            _ = machine.start()
            _ = machine.headReceived(head(200), asksAboutRedirects: false)
            _ = machine.headHandled(.receive)
            machine.pause(.disk)
        }
        #expect(machine.leaveSharedConnection(inCallback: false).words == "cancel")
        #expect(machine.connection.needsOwn)
    }

    @Test("what the lenient evaluation does not accept fails with the error of the default one")
    func lenientTrust() throws {
        var machine = Self.machine { _ = $0.start() }
        var end = Self.failed(.peerFailedVerification)
        end.error = TransferError(.tls, "the default")
        end.mayForgive = true
        #expect(machine.exchangeEnded(end).words == "send /a")
        #expect(machine.isLenient(at: try #require(machine.url)))
        var shown = Self.shown
        shown.isChainValid = false
        #expect(machine.certificatesReceived(shown, asksDelegate: false).words == "evaluate")
        #expect(machine.trustEvaluated(shown, isTrusted: false).words == "refuse")
        guard case .failing(let error) = machine.state else {
            Issue.record("the state is \(machine.state.words)")
            return
        }
        #expect(error.message == "the default")
    }

    @Test("a suspension outlasts the exchange; other reasons to pause end with it")
    func pauses() {
        var machine = Self.machine { _ in }
        machine.pause([.suspended, .full])
        _ = machine.start()
        #expect(machine.pauses == .suspended)
        #expect(machine.resume(.suspended).words == "resume" && machine.pauses.isEmpty)
    }

    @Test("a request that a stub passes to the network begins anew, and stays suspended")
    func passedToNetwork() {
        var machine = Self.machine { _ = $0.start() }
        machine.pause([.suspended, .source])
        #expect(machine.bytesSent(5) && machine.exchange.bodyBegun)
        machine.passedToNetwork()
        #expect(machine.awaitsHead && !machine.exchange.bodyBegun && machine.pauses == .suspended)
    }

    @Test("a reason that ends while a question is pending does not end the pause")
    func pauseOfQuestion() {
        var machine = Self.machine { machine in
            Self.ask(&machine) { Self.handle(.ask, &$0) }
        }
        machine.pause(.suspended)
        #expect(machine.pauses == [.suspended, .deciding])
        #expect(machine.resume(.suspended).words == "-")
        #expect(machine.answered(1, .response(.allow)).words == "allow")
        #expect(machine.headHandled(.receive).words == "resume")
    }

    @Test("HTTP/2 errors lead to another request only where that is safe")
    func brokenHTTP2() {
        var request = TransferRequest(url: "http://own/a")
        request.method = .post
        var machine = Machine(request, Machine.Configuration())
        _ = machine.start()
        #expect(machine.exchangeEnded(Self.failed(.http2)).words == "avoid HTTP/2, end stalled")
        var early = Self.failed(.gotNothing)
        early.offersHTTP2 = true
        var get = Self.machine { _ = $0.start() }
        var known = get
        #expect(get.exchangeEnded(early).words == "end stalled")
        early.hasPriorKnowledge = true
        #expect(known.exchangeEnded(early).words == "avoid HTTP/2, send /a")
    }
}
