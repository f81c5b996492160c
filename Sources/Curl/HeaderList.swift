import CCurl

/// Owns a `curl_slist`.
package struct HeaderList: ~Copyable {
    private(set) var head: UnsafeMutablePointer<curl_slist>?

    package init() {}

    package init(_ lines: some Sequence<String>) throws(CurlError) {
        for line in lines { try append(line) }
    }

    /// - Throws: for a line with a NUL, CR or LF, which would be another line, or two, on the wire.
    package mutating func append(_ line: String) throws(CurlError) {
        guard !line.utf8.contains(where: { $0 == 0x00 || $0 == 0x0D || $0 == 0x0A }) else {
            throw CurlError(CURLE_BAD_FUNCTION_ARGUMENT)
        }
        guard let longer = curl_slist_append(head, line) else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        head = longer
    }

    package var isEmpty: Bool { head == nil }

    deinit { curl_slist_free_all(head) }
}
