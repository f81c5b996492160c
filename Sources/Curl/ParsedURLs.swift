/// The URLs that a loop's requests used last, already parsed, since programs often send many requests to one URL.
///
/// Used on the loop's thread only.
package final class ParsedURLs {
    /// The number of URLs kept, a power of two.
    private static let capacity = 64
    /// The maximum size of a URL that is kept, in bytes.
    private static let longest = 1024

    private struct Entry {
        let text: String
        let url: CurlURL
    }

    /// The URLs, each at the index that its text's hash value gives.
    private var entries: [Entry?] = []

    package init() {}

    /// Returns the URL that a text stands for, parsed now or before.
    package func url(_ text: String) throws(CurlError) -> CurlURL {
        let index = text.hashValue & (Self.capacity - 1)
        if entries.isEmpty { entries = Array(repeating: nil, count: Self.capacity) }
        if let entry = entries[index], Self.isSame(entry.text, text) { return entry.url }
        let url = try CurlURL(text)
        // A URL with a password is not kept for longer than its request.
        if text.utf8.count <= Self.longest, !url.hasUser { entries[index] = Entry(text: text, url: url) }
        return url
    }

    /// Returns whether two texts have the same bytes. Texts that are equal for Swift may be different URLs: a letter with
    /// an accent can be one character or two (Unicode, canonical equivalence).
    private static func isSame(_ one: String, _ other: String) -> Bool {
        var (one, other) = (one, other)
        return one.withUTF8 { one in other.withUTF8 { one.elementsEqual($0) } }
    }
}
