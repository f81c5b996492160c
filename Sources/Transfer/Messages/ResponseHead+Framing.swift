import HTTPTypes

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
