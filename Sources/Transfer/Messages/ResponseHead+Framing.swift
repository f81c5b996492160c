import HTTPTypes

extension ResponseHead {
    /// Whether the end of the connection alone says where the body ends (RFC 9112, section 6.3).
    func isUnframed(after method: HTTPRequest.Method) -> Bool {
        version.hasPrefix("1") && method != .head && ![204, 304].contains(status) && contentLength == nil
            && !isChunked
    }

    /// A transfer coding other than `chunked` and `identity`. No request asks for one with `TE`, so that no server may
    /// use it (RFC 9112, section 7.4), and libcurl, which undoes some of them, does not notice where they are cut short.
    var unaskedTransferCoding: String? {
        transferCodings.first { $0 != "chunked" && $0 != "identity" }
    }

    /// Whether the last transfer coding is `chunked`: no other one says where the body ends.
    private var isChunked: Bool { transferCodings.last == "chunked" }

    /// Names of transfer codings, in lower case and in the order in which they were applied (RFC 9112, section 6.1).
    private var transferCodings: [String] {
        values(of: "transfer-encoding").joined(separator: ",").split(separator: ",")
            .map { String(decoding: FieldText.trimmed($0.utf8), as: UTF8.self).lowercased() }
            .filter { !$0.isEmpty }
    }
}
