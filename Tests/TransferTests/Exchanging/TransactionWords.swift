import Curl

@testable import Transfer

extension TransactionAction {
    /// The action in a few words.
    var words: String {
        switch self {
        case .proceed: "-"
        case .refuse: "refuse"
        case .cancelExchange: "cancel"
        case .resume: "resume"
        case .send(_, let url): "send \(url.path)"
        case .avoidHTTP2(_, let next): "avoid HTTP/2, \(next.words)"
        case .omitExpectation: "omit Expect"
        case .ask(let pending): "ask \(pending.question.words)"
        case .evaluate: "evaluate"
        case .deliverHead(let head, _): "head \(head.status)"
        case .deliverDecision(let disposition, _, _):
            switch disposition {
            case .allow: "allow"
            case .cancel: "disallow"
            case .becomeDownload, .download: "download"
            }
        case .end(let error): "end \(error?.code.rawValue ?? "well")"
        }
    }
}

extension TransactionQuestion {
    var words: String {
        switch self {
        case .redirect: "redirect"
        case .challenge: "challenge"
        case .trust: "trust"
        case .response: "response"
        }
    }
}

extension TransactionStateMachine.ExchangeState {
    var words: String {
        switch self {
        case .inCallback: "now"
        case .waiting: "waiting"
        case .ended(let error): "ended \(error?.code.rawValue ?? "well")"
        }
    }
}

extension TransactionStateMachine.State {
    var words: String {
        switch self {
        case .idle: "idle"
        case .requested: "requested"
        case .deciding(let pending, let standing): "\(pending.question.words)? \(standing.words)"
        case .delivering(_, let standing): "delivering \(standing.words)"
        case .receiving: "receiving"
        case .discarding(.send): "discarding, send"
        case .discarding(.fail): "discarding, fail"
        case .discarding(.end): "discarding, end"
        case .failing(let error): "failing \(error.code.rawValue)"
        case .ended: "ended"
        }
    }
}

extension BodyStep {
    var words: String {
        switch self {
        case .pass: "pass"
        case .discard: "discard"
        case .pause: "pause"
        case .refuse: "refuse"
        }
    }
}
