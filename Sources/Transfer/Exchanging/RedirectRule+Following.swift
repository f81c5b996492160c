import Curl
import HTTPTypes

extension RedirectRule {
    /// The fields that describe a body, which a request changed to GET does not have.
    private static let aboutBody: Set<String> = [
        "content-type", "content-length", "content-encoding", "content-language", "content-location", "digest",
        "content-digest", "repr-digest", "last-modified", "transfer-encoding", "expect",
    ]

    /// Returns whether the target may be on another server. A change from http to https on the same host reaches the
    /// same server.
    private static func leadsAway(from url: CurlURL, to target: CurlURL) -> Bool {
        if target.origin == url.origin { return false }
        return !(url.scheme == "http" && target.scheme == "https" && target.host == url.host)
    }

    /// Creates the request that follows a redirect.
    ///
    /// - Returns: the next request and its parsed URL.
    static func follow(
        _ head: ResponseHead, from request: TransferRequest, at url: CurlURL, protocols: [String]
    ) throws(TransferError) -> (request: TransferRequest, url: CurlURL) {
        guard let location = head.value(of: "location"), !location.isEmpty else {
            throw TransferError(
                .httpStatus, "the server sent a redirect (\(head.status)) without a target", httpStatus: head.status)
        }
        let target: CurlURL
        do throws(CurlError) {
            target = try CurlURL(location, relativeTo: url)
        } catch {
            throw TransferError(.protocolNotAllowed, "the server redirects to an invalid URL")
        }
        guard protocols.contains(target.scheme) else {
            throw TransferError(.protocolNotAllowed, "the server redirects to the protocol \(target.scheme)")
        }
        if url.scheme == "https", target.scheme == "http", !request.allowsDowngrade {
            throw TransferError(.protocolNotAllowed, "the server redirects from https to http")
        }
        var next = request
        next.url = target.text
        next.method = method(after: head.status, of: request.method)
        if request.keepsBodyWithinOrigin, next.method == request.method, leadsAway(from: url, to: target) {
            let words =
                "the server \(url.origin) redirects (\(head.status)) the request with its body to \(target.origin)"
            throw TransferError(
                .protocolNotAllowed, "\(words), which was not requested: use that URL if it is right")
        }
        if next.method != request.method {
            next.headerFields = HTTPFields(next.headerFields.filter { !aboutBody.contains($0.name.canonicalName) })
        }
        if target.origin != url.origin { next.leaveOrigin(for: target) }
        return (next, target)
    }
}
