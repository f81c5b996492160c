import Curl

/// A question that a delegate decides.
enum TransactionQuestion {
    /// Whether to follow a redirect, and with which request.
    ///
    /// - Parameters: the redirect response, the proposed request, and its URL.
    case redirect(ResponseHead, TransferRequest, CurlURL)
    /// The response to the challenge of a server or a proxy.
    ///
    /// - Parameters: the challenge, and the response that carries it.
    case challenge(Authorization.Demand, ResponseHead)
    /// Whether the server is trusted. The exchange is aborted if the answer is not immediate; a late consent sends the
    /// request again.
    case trust(ServerTrust)
    /// The use of the final response, whose head the client has received.
    case response(ResponseHead)

    /// The decision if the delegate makes none.
    var fallback: Decision {
        switch self {
        case .redirect(_, let request, _): .redirect(request)
        case .challenge, .trust: .challenge(.performDefaultHandling, nil)
        case .response: .response(.allow)
        }
    }
}

/// A question that was asked and not answered yet.
struct PendingQuestion {
    /// The number by which a late answer to an earlier question is recognised and ignored.
    let number: Int
    let question: TransactionQuestion
}
