extension WebSocketResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// The result, as in `success: closed with 1000 (normal closure)`, or `failure:` and the message.
    public var description: String {
        ResponseText.result(result, closure.map { "closed with \($0)" } ?? "closed")
    }

    /// Lines about the request, the times and the result. Secrets are left out.
    public var debugDescription: String {
        (ResponseText.request(request) + ResponseText.end(metrics, description)).joined(separator: "\n")
    }
}
