import Curl
import TestSupport

@testable import Transfer

/// The choices of a run: the first ones from a script, and the others random or, without a generator, the first.
struct Choices {
    let script: [Int]
    var generator: SeededGenerator?
    /// The choices so far, each with the number of its alternatives.
    private(set) var taken: [(choice: Int, count: Int)] = []

    init(script: [Int] = [], generator: SeededGenerator? = nil) {
        self.script = script
        self.generator = generator
    }

    mutating func choose<Element>(_ elements: [Element]) -> Element {
        var choice = 0
        if taken.count < script.count {
            choice = min(script[taken.count], elements.count - 1)
        } else if var generator {
            choice = .random(in: 0..<elements.count, using: &generator)
            self.generator = generator
        }
        taken.append((choice, elements.count))
        return elements[choice]
    }

    /// The next script of the same length at most; `nil` after the last one.
    func next(upTo length: Int) -> [Int]? {
        var digits = Array(taken.prefix(length))
        while let last = digits.popLast() {
            if last.choice + 1 < last.count { return digits.map(\.choice) + [last.choice + 1] }
        }
        return nil
    }
}

/// A whole transaction as a value: the state machine, an exchange with a server, a client and a delegate. It performs
/// every action without I/O, so that a test can order the events as it likes.
struct TransactionModel {
    /// What may happen next.
    enum Event: Hashable {
        /// The server shows its certificates.
        case certificates
        case head
        case trailer
        case bytes
        /// libcurl calls for bytes of the request's body.
        case request
        /// The exchange ends well.
        case finish
        /// The exchange ends because one of its callbacks has refused it.
        case refusal
        case breakOff
        /// The default evaluation refuses the certificates.
        case certificateRefused
        case brokenHTTP2
        /// The delegate answers the question with this number.
        case answer(Int)
        case cancel
        case suspend
        case resume
        /// The client has room for more bytes.
        case room
        /// The client sends another request after the end.
        case start
    }

    private enum Exchange: Equatable {
        case none
        case connecting
        case sent
        case body(left: Int)
        /// A callback has refused the exchange.
        case refused
    }

    private(set) var machine: TransactionStateMachine
    var choices: Choices
    /// Whether nothing goes wrong any more, so that the run ends.
    var isCalm = false
    let isSecure: Bool
    private var exchange = Exchange.none
    private var isPaused = false
    private var stored: Int?
    private var openQuestions: [Int] = []
    private var hasHead = false
    private var omitsExpectation = false
    /// The delegate's or the policy's verdict on the certificates shown last.
    private var verdict: Bool?
    private(set) var starts = 0
    private(set) var ends = 0
    private(set) var sends = 0
    /// The first fault seen; `nil` if there is none.
    private(set) var fault: String?

    init(_ choices: Choices, isSecure: Bool) {
        self.choices = choices
        self.isSecure = isSecure
        machine = TransactionStateMachine(
            TransferRequest(url: isSecure ? "https://own/a" : "http://own/a"),
            TransactionStateMachine.Configuration(maximumRedirects: 3))
        happen(.start)
    }

    // MARK: Events

    /// Every event that may happen now, the ones that lead to an end first.
    var possibleEvents: [Event] {
        var events: [Event] = []
        switch exchange {
        case .none: break
        case .connecting: events.append(.certificates)
        case .sent: events += [.head]
        case .body(let left): if !isPaused { events.append(left > 0 ? .bytes : .finish) }
        case .refused: events.append(.refusal)
        }
        events += openQuestions.map { .answer($0) }
        if machine.reasons.contains(.suspended) { events.append(.resume) }
        if machine.reasons.contains(.full) { events.append(.room) }
        if isCalm { return events }
        if exchange != .none, exchange != .refused { events.append(.breakOff) }
        switch exchange {
        case .none, .refused: break
        case .connecting: events.append(.certificateRefused)
        case .sent: events += [.request, .brokenHTTP2]
        case .body: events += isPaused ? [] : [.trailer, .request, .brokenHTTP2]
        }
        if machine.isUnderWay { events += [.cancel, .suspend] } else if starts < 4 { events.append(.start) }
        return events
    }

    mutating func happen(_ event: Event) {
        switch event {
        case .certificates: showCertificates()
        case .head: respond()
        case .trailer: go(on: perform(machine.trailerReceived(choices.choose([10, 300_000]))))
        case .bytes: receive()
        case .request: send()
        case .finish: end(.finished, nil)
        case .refusal: end(.failed(.abortedByCallback), TransferError(.truncated, "a write failed"))
        case .breakOff: end(.failed(.recvError), TransferError(.truncated, "the connection broke"))
        case .certificateRefused:
            end(.failed(.peerFailedVerification), TransferError(.tls, "refused"))
        case .brokenHTTP2: end(.failed(.http2Stream), TransferError(.truncated, "a stream was reset"))
        case .answer(let number):
            openQuestions.removeAll { $0 == number }
            perform(machine.answered(number, decision()))
        case .cancel: perform(machine.cancel(.cancelled))
        case .suspend: machine.pause(.suspended)
        case .resume: perform(machine.resume(.suspended))
        case .room: perform(machine.resume(.full))
        case .start:
            starts += 1
            perform(machine.start())
        }
        check()
    }

    private mutating func check() {
        if let violation = machine.violation { fail(violation) }
        if starts - ends != (machine.isUnderWay ? 1 : 0) { fail("\(starts) starts and \(ends) ends") }
        if !machine.isUnderWay, exchange != .none { fail("an exchange outlives its transaction") }
        if machine.isUnderWay, !possibleEvents.contains(where: { ![.cancel, .suspend].contains($0) }) {
            fail("no event will come")
        }
        if case .deciding(let pending, let standing) = machine.state {
            if !openQuestions.contains(pending.number) { fail("nobody will answer") }
            if case .inCallback = standing, stored == nil { fail("a callback has returned without a decision") }
        }
    }

    private mutating func fail(_ words: String) {
        if fault == nil { fault = words }
    }

    private mutating func go(on goesOn: Bool) {
        if !goesOn, exchange != .none { exchange = .refused }
    }

    private mutating func showCertificates() {
        verdict = nil
        let shown = ServerTrust(host: "own", certificates: ["c"], isChainValid: true)
        let asks = choices.choose([true, false])
        let goesOn = perform(machine.certificatesReceived(shown, asksDelegate: asks)) && machine.awaitsHead
        if goesOn, verdict != true, machine.trust.accepted == nil { fail("an untrusted server gets the request") }
        exchange = goesOn ? .sent : .refused
    }

    private mutating func respond() {
        let heads: [ResponseHead] = [
            head(200), head(302, ["Location: /b"]), head(401, ["WWW-Authenticate: Basic realm=\"r\""]), head(302),
            ResponseHead(status: 200, version: "2", lines: []), head(417),
        ]
        let head = isCalm ? heads[0] : choices.choose(heads)
        exchange = .body(left: isCalm ? 0 : choices.choose([0, 40_000, 200_000]))
        go(on: perform(machine.headReceived(head, asksAboutRedirects: choices.choose([false, true]))))
    }

    private mutating func receive() {
        guard case .body(let left) = exchange else { return }
        let count = min(left, 16_000)
        switch machine.bytesReceived(count) {
        case .discard: exchange = .body(left: left - count)
        case .refuse: exchange = .refused
        case .pause: pause()
        case .pass:
            if !hasHead { fail("bytes before the head") }
            switch disposition() {
            case .accepted: exchange = .body(left: left - count)
            case .refused(let error):
                if let error { perform(machine.refuse(error)) }
                exchange = .refused
            case .paused(let reason):
                machine.pause(reason)
                guard machine.connection.isShared, choices.choose([false, true]) else { return pause() }
                if perform(machine.leaveSharedConnection(inCallback: true)) { fail("a left connection goes on") }
                exchange = .refused
            }
        }
    }

    private mutating func pause() {
        if machine.pauses.isEmpty { fail("a pause without a reason") }
        isPaused = true
    }

    private mutating func disposition() -> BodyDisposition {
        if isCalm { return .accepted }
        let error = TransferError(.diskFull, "full")
        return choices.choose([.accepted, .accepted, .paused(.full), .refused(error), .refused(nil)])
    }

    private mutating func send() {
        switch machine.bytesRequested() {
        case .pass: _ = machine.bytesSent(choices.choose([0, 100]))
        case .pause: if machine.pauses.isEmpty { fail("a pause without a reason") }
        case .refuse: exchange = .refused
        case .discard: fail("bytes to send are discarded")
        }
    }

    private mutating func end(_ cause: TransactionStateMachine.ExchangeEnd.Cause, _ error: TransferError?) {
        exchange = .none
        var end = TransactionStateMachine.ExchangeEnd(cause: cause, error: error)
        end.offersHTTP2 = isSecure
        end.mayForgive = isSecure && machine.trust.lenient == nil
        perform(machine.exchangeEnded(end))
    }

    // MARK: Actions

    @discardableResult
    private mutating func perform(_ action: TransactionAction) -> Bool {
        switch action {
        case .proceed: return true
        case .refuse: return false
        case .cancelExchange:
            guard exchange != .none else { return perform(machine.exchangeWasAbsent()) }
            end(.cancelled, .cancelled)
        case .resume: resume()
        case .send: sendRequest()
        case .avoidHTTP2(_, let next): return perform(next)
        case .omitExpectation:
            if omitsExpectation { fail("a request is repeated without Expect twice") }
            omitsExpectation = true
            return false
        case .ask(let pending): return ask(pending)
        case .evaluate(let shown):
            let isTrusted = isCalm || choices.choose([true, false])
            verdict = isTrusted
            return perform(machine.trustEvaluated(shown, isTrusted: isTrusted))
        case .deliverHead:
            if hasHead { fail("two final heads") }
            hasHead = true
            return perform(machine.headHandled(headDisposition(mayAsk: true)))
        case .deliverDecision: return perform(machine.headHandled(headDisposition(mayAsk: false)))
        case .end:
            ends += 1
            stored = nil
            if exchange != .none { fail("the end before the exchange's") }
        }
        return true
    }

    private mutating func headDisposition(mayAsk: Bool) -> HeadDisposition {
        if isCalm { return .receive }
        let choices: [HeadDisposition] = [.receive, .discard, .refuse(TransferError(.diskFull, "full"))]
        return self.choices.choose(mayAsk ? choices + [.ask] : choices)
    }

    private mutating func sendRequest() {
        if exchange != .none { fail("two exchanges at once") }
        (hasHead, isPaused, stored) = (false, false, nil)
        sends += 1
        switch isCalm ? 0 : choices.choose([0, 0, 0, 1, 2]) {
        case 1: perform(machine.sendingFailed(TransferError(.unknownHost, "unknown")))
        case 2:
            stored = choices.choose([0, 2])
            perform(machine.storedResponseFound(head(200)))
        default:
            exchange = isSecure ? .connecting : .sent
            machine.prepared(expecting: omitsExpectation ? nil : .named)
        }
    }

    private mutating func ask(_ pending: PendingQuestion) -> Bool {
        if isCalm || choices.choose([true, false]) {
            return perform(machine.answered(pending.number, decision()))
        }
        openQuestions.append(pending.number)
        return perform(machine.answerDelayed(pending.number))
    }

    private mutating func decision() -> Decision {
        guard let question = machine.pendingQuestion?.question else { return .redirect(nil) }
        switch question {
        case .redirect(_, let request, _): return .redirect(choices.choose([request, nil]))
        case .challenge:
            let credential = Credential(user: "u", password: "p")
            return choices.choose([
                .challenge(.performDefaultHandling, nil), .challenge(.useCredential, credential),
                .challenge(.cancelAuthenticationChallenge, nil),
            ])
        case .trust:
            let decision: Decision = choices.choose([
                .challenge(.useCredential, nil), .challenge(.performDefaultHandling, nil),
                .challenge(.rejectProtectionSpace, nil), .challenge(.cancelAuthenticationChallenge, nil),
            ])
            if case .challenge(let disposition, _) = decision { verdict = disposition == .useCredential }
            return decision
        case .response: return .response(.allow)
        }
    }

    private mutating func resume() {
        if !machine.pauses.isEmpty { fail("resumed in spite of a reason to pause") }
        isPaused = false
        while let left = stored, machine.pauses.isEmpty {
            guard machine.isReceiving, left > 0 else {
                stored = nil
                perform(machine.storedBodyEnded())
                return
            }
            switch disposition() {
            case .accepted:
                machine.storedBytesDelivered()
                stored = left - 1
            case .paused(let reason): machine.pause(reason)
            case .refused(let error):
                perform(error.map { machine.refuse($0) } ?? machine.storedBodyEnded())
                return
            }
        }
    }
}
