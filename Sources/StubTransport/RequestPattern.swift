import Curl
import HTTPTypes
import Transfer

/// A method and a URL that requests are compared with.
struct RequestPattern {
    private let method: String?
    /// The URL without its query.
    private let address: [UInt8]
    /// The query; `nil` for any query, and none. An empty one is that of a URL without a query.
    private let query: [UInt8]?
    /// Whether the pattern is a URL itself. With a `*` in its host, for example, it is none.
    private let isURL: Bool

    /// - Parameters:
    ///   - method: the method; `nil` for any.
    ///   - url: the URL, with `*` for any text. Without a query, or with the query `*`, it matches every query. With
    ///     an empty query, as in `https://a.example/?`, it matches a URL without a query.
    init(method: String?, url: String) {
        self.method = method
        let normalised = Self.normalised(url)
        isURL = normalised != nil
        let (address, query) = Self.divided(normalised ?? url)
        self.address = address
        // libcurl may drop an empty query.
        let stated = query ?? (url.utf8.last == UInt8(ascii: "?") ? [] : nil)
        self.query = stated == [UInt8(ascii: "*")] ? nil : stated
    }

    func matches(_ request: SentRequest) -> Bool {
        if let method, method != request.method.rawValue { return false }
        let (address, query) = Self.divided(isURL ? Self.normalised(request.url) ?? request.url : request.url)
        guard Self.matches(address[...], self.address[...]) else { return false }
        return self.query.map { Self.matches((query ?? [])[...], $0[...]) } ?? true
    }

    /// Divides a URL at the beginning of its query.
    ///
    /// - Returns: the query without the question mark; `nil` if there is none.
    private static func divided(_ url: String) -> (address: [UInt8], query: [UInt8]?) {
        let parts = url.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        return (Array(parts[0]), parts.count > 1 ? Array(parts[1]) : nil)
    }

    /// Returns the URL with its port and without a user, so that notations of one URL are equal.
    ///
    /// - Returns: `nil` if the text is no URL.
    private static func normalised(_ url: String) -> String? {
        (try? CurlURL(url)).map { $0.origin + $0.target }
    }

    /// Compares text with a pattern. After a mismatch, the latest `*` takes one more byte.
    private static func matches(_ text: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        var (position, place) = (text.startIndex, pattern.startIndex)
        var star: (place: Int, position: Int)?
        while position < text.endIndex {
            if place < pattern.endIndex, pattern[place] == UInt8(ascii: "*") {
                star = (place, position)
                place += 1
            } else if place < pattern.endIndex, pattern[place] == text[position] {
                place += 1
                position += 1
            } else if let latest = star {
                star = (latest.place, latest.position + 1)
                place = latest.place + 1
                position = latest.position + 1
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
