package import HTTPTypes

extension ResponseHead {
    /// Returns whether only the end of the connection delimits the body (RFC 9112, section 6.3).
    package func isUnframed(after method: HTTPRequest.Method) -> Bool {
        version.hasPrefix("1") && method != .head && ![204, 304].contains(status) && contentLength == nil
            && !isChunked
    }

    /// Returns whether the response has no body, or one that ends with its last chunk (RFC 9112, section 6.3), so that
    /// nothing but its own syntax tells it from bytes behind it.
    package func delimitsItself(after method: HTTPRequest.Method) -> Bool {
        version.hasPrefix("1")
            && (method == .head || [204, 304].contains(status) || contentLength == 0 || isChunked)
    }

    /// A transfer coding other than `chunked` and `identity`, if the response uses one. No request offers one in `TE`,
    /// so no server may use one (RFC 9112, section 7.4). libcurl decodes some of them but does not detect truncated
    /// data.
    package var unaskedTransferCoding: String? {
        transferCodings.first { $0 != "chunked" && $0 != "identity" }
    }

    /// Whether the last transfer coding is `chunked`. No other coding delimits the body.
    private var isChunked: Bool { transferCodings.last == "chunked" }

    /// The names of the transfer codings, in lower case and in the order of application (RFC 9112, section 6.1).
    private var transferCodings: [String] {
        values(of: "transfer-encoding").joined(separator: ",").split(separator: ",")
            .map { String(decoding: FieldText.trimmed($0.utf8), as: UTF8.self).lowercased() }
            .filter { !$0.isEmpty }
    }
}
