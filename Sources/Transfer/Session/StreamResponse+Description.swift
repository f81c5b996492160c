extension StreamResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// The result: `success: closed on both sides`, or `failure:` and the message.
    public var description: String { ResponseText.result(result, "closed on both sides") }

    /// Lines about the request, the times and the result. Secrets are left out.
    public var debugDescription: String {
        (ResponseText.request(request) + ResponseText.end(metrics, description)).joined(separator: "\n")
    }
}
