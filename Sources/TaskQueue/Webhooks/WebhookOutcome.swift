import Transfer

/// The outcome of a message to a receiver.
enum WebhookOutcome: Equatable, Sendable {
    case accepted
    /// The receiver works, but does not accept this event.
    case refused(String)
    /// The receiver as a whole does not work, or asks for a pause of `retryAfter` seconds.
    case failed(String, retryAfter: Int64? = nil)

    /// The statuses from 400 to 499 that are not about the event: the proxy's login, the time, the number of requests.
    private static let temporary: Set<Int> = [407, 408, 425, 429]

    /// Derives the outcome from the status of a response.
    init(status: Int, retryAfter: Int64?) {
        let message = "server replied \(status)"
        self =
            switch status {
            case 200..<300: .accepted
            case 400..<500 where !Self.temporary.contains(status): .refused(message)
            default: .failed(message, retryAfter: retryAfter)
            }
    }

    /// Derives the outcome from the error of a request without a response.
    init(_ error: TransferError?) {
        guard let error else {
            self = .failed("no response")
            return
        }
        guard error.code == .addressNotAllowed else {
            self = .failed(error.message)
            return
        }
        let advice = "remove the network from network.deny, or set network.exempt to administrators"
        self = .failed("\(error.code.rawValue): \(error.message); \(advice)")
    }

    /// The reason why the event was not accepted; `nil` if it was.
    var fault: String? {
        switch self {
        case .accepted: nil
        case .refused(let message), .failed(let message, _): message
        }
    }
}
