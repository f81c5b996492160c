import Curl
import TestSupport
import Testing

@testable import Transfer

/// Responses of misbehaving servers, replayed as events without a socket.
@Suite("A transaction's state machine with responses of misbehaving servers")
struct TransactionReplayTests {
    /// A state machine that reads the bytes of responses as libcurl reports them, and a client that takes everything.
    private struct Replay {
        var machine: TransactionStateMachine
        /// The actions and uses of body bytes, without those that let the exchange go on. Repeated ones are listed
        /// once.
        private(set) var steps: [String] = []

        init(redirects: Int = 2) {
            machine = TransactionStateMachine(
                TransferRequest(url: "http://own/a"),
                TransactionStateMachine.Configuration(maximumRedirects: redirects))
            perform(machine.start())
        }

        private mutating func record(_ words: String) {
            if words != "-", steps.last != words { steps.append(words) }
        }

        @discardableResult
        private mutating func perform(_ action: TransactionAction) -> Bool {
            record(action.words)
            switch action {
            case .refuse, .omitExpectation: return false
            case .deliverHead: return perform(machine.headHandled(.receive))
            default: return true
            }
        }

        /// Replays a response up to the end of its exchange.
        mutating func respond(_ response: MisbehavingResponse) {
            let goesOn = readHeaders(of: response) && response.body.allSatisfy { read($0) }
            var end = TransactionStateMachine.ExchangeEnd(cause: .finished)
            switch response.ending {
            case .open, .close: break
            case .reset:
                end.cause = .failed(.recvError)
                end.error = TransferError(.truncated, "reset")
            case .hang:
                end.cause = .stalled
                end.error = TransferError(.stalled, "silent")
            }
            if !goesOn {
                end.cause = .failed(.abortedByCallback)
                end.error = TransferError(.internal, "a callback has refused")
            }
            perform(machine.exchangeEnded(end))
        }

        private mutating func readHeaders(of response: MisbehavingResponse) -> Bool {
            let head = ["\(response.version) \(response.status) r"] + response.fields
            let lines = String(decoding: response.interim, as: UTF8.self) + head.map { $0 + "\r\n" }.joined() + "\r\n"
            var parser = ResponseHeadParser()
            for line in lines.split(separator: "\r\n", omittingEmptySubsequences: false).dropLast() {
                let goesOn = Array("\(line)\r\n".utf8).withUnsafeBytes { receive($0, &parser) }
                if !goesOn { return false }
            }
            return true
        }

        private mutating func receive(_ line: UnsafeRawBufferPointer, _ parser: inout ResponseHeadParser) -> Bool {
            guard machine.awaitsHead else { return perform(machine.trailerReceived(line.count)) }
            switch parser.add(line) {
            case .incomplete: return true
            case .tooLong: return perform(machine.refuse(TransferError(.tooLarge, "the head is too long")))
            case .complete(let head): return perform(machine.headReceived(head, asksAboutRedirects: false))
            }
        }

        private mutating func read(_ piece: MisbehavingResponse.Piece) -> Bool {
            switch piece {
            case .content(_, let range, _): return read(Int(range.upperBound - range.lowerBound))
            case .bytes(let bytes): return read(bytes.count)
            case .pause: return true
            case .raw(let bytes): return perform(machine.trailerReceived(bytes.count))
            case .endless(let bytes):
                // Whoever reads it for ever does not end.
                for _ in 0..<100_000 where !perform(machine.trailerReceived(bytes.count)) { return false }
                return true
            }
        }

        private mutating func read(_ count: Int) -> Bool {
            var left = count
            while left > 0 {
                let step = machine.bytesReceived(min(left, 16_384))
                record(step.words)
                if step == .refuse { return false }
                left -= 16_384
            }
            return true
        }
    }

    private static func informational(_ count: Int) -> [UInt8] {
        Array(String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", count: count).utf8)
    }

    @Test("informational heads are skipped, but not without end")
    func informationalHeads() {
        for (count, expected) in [
            (3, ["send /a", "head 200", "pass", "end well"]), (40, ["send /a", "refuse", "end too-large"]),
        ] {
            var replay = Replay()
            var response = MisbehavingResponse(200, text: "hello")
            response.interim = Self.informational(count)
            replay.respond(response)
            #expect(replay.steps == expected)
        }
    }

    @Test("an endless head ends the transaction")
    func endlessHead() {
        var replay = Replay()
        replay.respond(
            MisbehavingResponse(200, Array(repeating: "X: " + String(repeating: "x", count: 1_000), count: 400)))
        #expect(replay.steps == ["send /a", "refuse", "end too-large"])
    }

    @Test("endless trailers end the transaction")
    func endlessTrailers() {
        var replay = Replay()
        var response = MisbehavingResponse(200, text: "hello")
        response.body.append(.endless(Array("X: y\r\n".utf8)))
        replay.respond(response)
        #expect(replay.steps == ["send /a", "head 200", "pass", "refuse", "end too-large"])
    }

    @Test("a long body of a redirect is not read, and the redirect is followed nevertheless")
    func longRedirect() {
        var replay = Replay()
        var redirect = MisbehavingResponse(302, ["Location: /b"], text: String(repeating: "x", count: 200_000))
        redirect.ending = .reset
        replay.respond(redirect)
        replay.respond(MisbehavingResponse(200, text: "hello"))
        #expect(replay.steps == ["send /a", "discard", "refuse", "send /b", "head 200", "pass", "end well"])
    }

    @Test("a circle of redirects ends")
    func circle() {
        var replay = Replay()
        for _ in 0..<3 { replay.respond(MisbehavingResponse(307, ["Location: /a"])) }
        #expect(replay.steps == ["send /a", "end too-many-redirects"])
        #expect(!replay.machine.isUnderWay)
    }

    @Test("a redirect away from HTTP fails")
    func otherProtocol() {
        for target in ["file:///etc/passwd", "gopher://own/"] {
            var replay = Replay()
            replay.respond(MisbehavingResponse(301, ["Location: \(target)"]))
            #expect(replay.steps == ["send /a", "end protocol-not-allowed"])
        }
    }

    @Test(
        "a body that breaks off is reported with the error of the exchange",
        arguments: [(MisbehavingResponse.Ending.reset, "end truncated"), (.hang, "end stalled")])
    func brokenBody(ending: MisbehavingResponse.Ending, expected: String) {
        var replay = Replay()
        var response = MisbehavingResponse(200, text: "hello")
        response.ending = ending
        replay.respond(response)
        #expect(replay.steps == ["send /a", "head 200", "pass", expected])
    }

    @Test("a challenge without an offer is the final response")
    func emptyChallenge() {
        var replay = Replay()
        replay.respond(MisbehavingResponse(401, ["WWW-Authenticate: ,"], text: "no"))
        #expect(replay.steps == ["send /a", "head 401", "pass", "end well"])
    }
}
