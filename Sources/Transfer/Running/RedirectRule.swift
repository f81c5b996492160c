import Curl
import HTTPTypes

/// Where a redirect leads (RFC 9110, section 15.4), and what may go along.
enum RedirectRule {
    static func isRedirect(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// Fields that say nothing about who asks, but what is asked for and what the body is: all that crosses an origin.
    private static let harmless: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "content-encoding", "content-language",
        "content-type", "if-range", "pragma", "range", "user-agent",
    ]

    /// - Parameter name: of a field, in lower case.
    static func isHarmless(_ name: String) -> Bool { harmless.contains(name) }

    /// The method to go on with: 303 asks to look elsewhere, and after 301 and 302 everyone makes GET of POST.
    static func method(after status: Int, of method: HTTPRequest.Method) -> HTTPRequest.Method {
        switch status {
        case 303 where method != .head: .get
        case 301 where method == .post, 302 where method == .post: .get
        default: method
        }
    }

    /// What speaks of a body, which a request that turned into GET has not.
    private static let aboutBody: Set<String> = [
        "content-type", "content-length", "content-encoding", "content-language", "content-location", "digest",
        "content-digest", "repr-digest", "last-modified", "transfer-encoding", "expect",
    ]

    /// Whether another server is reached, or one that may be: the way up from http to https leads to the same one.
    private static func leadsAway(from url: CurlURL, to target: CurlURL) -> Bool {
        if target.origin == url.origin { return false }
        return !(url.scheme == "http" && target.scheme == "https" && target.host == url.host)
    }

    /// - Returns: the request to make next.
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
    /// Asking twice comes to the same as asking once (RFC 9110, section 9.2.2).
    var isIdempotent: Bool { [.get, .head, .put, .delete, .options, .trace].contains(self) }
}
