import CCurl
import Glibc

/// An owner of a `curl_slist`.
package struct HeaderList: ~Copyable {
    private(set) var head: UnsafeMutablePointer<curl_slist>?

    package init() {}

    package init(_ lines: some Sequence<String>) throws(CurlError) {
        for line in lines { try append(line) }
    }

    /// - Throws: an error for a line with a NUL, CR or LF, which would become a different line, or two lines, when
    ///   sent.
    package mutating func append(_ line: String) throws(CurlError) {
        // A pointer to the string's own storage: an implicit conversion would copy it.
        let (isLine, longer) = line.withCString { text in
            // `strcspn` would take several times as long.
            let count = line.utf8.count
            let endsWithin = memchr(text, 0x0A, count) != nil || memchr(text, 0x0D, count) != nil
            let isLine = !endsWithin && memchr(text, 0, count) == nil
            return (isLine, isLine ? curl_slist_append(head, text) : nil)
        }
        guard isLine else { throw CurlError(CURLE_BAD_FUNCTION_ARGUMENT) }
        guard let longer else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        head = longer
    }

    /// Appends a line that need not be UTF-8, such as a command with a file name.
    ///
    /// - Throws: an error for a line with a NUL, CR or LF.
    package mutating func append(bytes line: [UInt8]) throws(CurlError) {
        guard !line.contains(where: { $0 == 0x00 || $0 == 0x0D || $0 == 0x0A }) else {
            throw CurlError(CURLE_BAD_FUNCTION_ARGUMENT)
        }
        let longer = (line + [0]).withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { curl_slist_append(head, $0.baseAddress) }
        }
        guard let longer else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        head = longer
    }

    package var isEmpty: Bool { head == nil }

    deinit { curl_slist_free_all(head) }
}
