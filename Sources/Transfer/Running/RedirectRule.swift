import Curl
import HTTPTypes

/// The rules for redirects (RFC 9110, section 15.4) and for the fields that are sent to the target.
enum RedirectRule {
    static func isRedirect(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// The fields that describe the requested resource or the body but do not identify the client. Only these are sent
    /// to another origin.
    private static let harmless: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "content-encoding", "content-language",
        "content-type", "if-range", "pragma", "range", "user-agent",
    ]

    /// Returns whether a field may be sent to another origin.
    ///
    /// - Parameter name: the field's name in lower case.
    static func isHarmless(_ name: String) -> Bool { harmless.contains(name) }

    /// Returns the method of the next request. 303 requires GET, and all clients change POST to GET after 301 and 302.
    static func method(after status: Int, of method: HTTPRequest.Method) -> HTTPRequest.Method {
        switch status {
        case 303 where method != .head: .get
        case 301 where method == .post, 302 where method == .post: .get
        default: method
        }
    }

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
        _ head: ResponseHead, from request: TransferRequest, at url: CurlURL, protocols: String
    ) throws(TransferError) -> (request: TransferRequest, url: CurlURL) {
        guard let location = head.value(of: "location"), !location.isEmpty else {
            throw TransferError(
                .httpStatus, "the server redirects (\(head.status)) without saying where to", httpStatus: head.status)
        }
        let target: CurlURL
        do throws(CurlError) {
            target = try CurlURL(location, relativeTo: url)
        } catch {
            throw TransferError(.protocolNotAllowed, "the server redirects to what is no URL that can be followed")
        }
        guard protocols.split(separator: ",").contains(Substring(target.scheme)) else {
            throw TransferError(.protocolNotAllowed, "the server redirects to the protocol \(target.scheme)")
        }
        if url.scheme == "https", target.scheme == "http", !request.allowsDowngrade {
            throw TransferError(.protocolNotAllowed, "the server redirects from https to http")
        }
        var next = request
        next.url = target.text
        next.method = method(after: head.status, of: request.method)
        if request.keepsBodyWithinOrigin, next.method == request.method, leadsAway(from: url, to: target) {
            let words = "the server \(url.origin) redirects (\(head.status)) what is sent to it to \(target.origin)"
            throw TransferError(
                .protocolNotAllowed, "\(words), which was not asked for: send it there yourself if that is right")
        }
        if next.method != request.method {
            next.headerFields = HTTPFields(next.headerFields.filter { !aboutBody.contains($0.name.canonicalName) })
        }
        if target.origin != url.origin {
            next.credential = nil
            next.identity = nil
            next.hasLeftOrigin = true
            next.headerFields = HTTPFields(next.headerFields.filter { isHarmless($0.name.canonicalName) })
        }
        return (next, target)
    }
}

extension HTTPRequest.Method {
    /// Whether several identical requests have the same effect as one (RFC 9110, section 9.2.2).
    var isIdempotent: Bool { [.get, .head, .put, .delete, .options, .trace].contains(self) }
}
