import HTTPTypes

/// A connection under TLS that ended without close_notify, by which anyone on the network can end it: a body that its
/// end alone delimits may lack bytes (RFC 9112, section 9.8).
struct IncompleteClose: Error {}

extension TransferError {
    /// The connection to `host` ended within TLS, and the answer with it.
    static func incompleteClose(host: String) -> TransferError {
        TransferError(
            .truncated,
            "\(host) states no length, and the connection ended without TLS saying that all of the answer came; "
                + "with a checksum that would show", underlying: IncompleteClose())
    }

    /// Whether nothing but the end of a body without a length is in doubt.
    var isIncompleteClose: Bool { underlying is IncompleteClose }
}

extension ResponseHead {
    /// Whether the end of the connection alone says where the body ends (RFC 9112, section 6.3).
    func isUnframed(after method: HTTPRequest.Method) -> Bool {
        version.hasPrefix("1") && method != .head && ![204, 304].contains(status) && contentLength == nil
            && !isChunked
    }

    /// Whether the last transfer coding is `chunked`: no other one says where the body ends.
    private var isChunked: Bool {
        let last = values(of: "transfer-encoding").joined(separator: ",").split(separator: ",").last
        return last?.filter { $0 != " " && $0 != "\t" }.lowercased() == "chunked"
    }
}
