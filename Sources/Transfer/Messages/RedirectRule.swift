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
        "content-type", "if-modified-since", "if-none-match", "if-range", "pragma", "range", "user-agent",
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
}

extension HTTPRequest.Method {
    /// Whether several identical requests have the same effect as one (RFC 9110, section 9.2.2).
    var isIdempotent: Bool { [.get, .head, .put, .delete, .options, .trace].contains(self) }
}
