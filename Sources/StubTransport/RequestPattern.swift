import Curl
import HTTPTypes
import Transfer

/// A method and a URL that requests are compared with.
struct RequestPattern {
    private let method: String?
    private let url: [UInt8]
    private let hasQuery: Bool
    /// Whether the pattern is a URL itself. With a `*` in its host, for example, it is none.
    private let isURL: Bool

    /// - Parameters:
    ///   - method: the method; `nil` for any.
    ///   - url: the URL, with `*` for any text. Without a query, it matches every query.
    init(method: String?, url: String) {
        self.method = method
        let normalised = Self.normalised(url)
        self.url = Array((normalised ?? url).utf8)
        hasQuery = self.url.contains(UInt8(ascii: "?"))
        isURL = normalised != nil
    }

    func matches(_ request: SentRequest) -> Bool {
        if let method, method != request.method.rawValue { return false }
        var text = Array((isURL ? Self.normalised(request.url) ?? request.url : request.url).utf8)[...]
        if !hasQuery, let mark = text.firstIndex(of: UInt8(ascii: "?")) { text = text[..<mark] }
        return Self.matches(text, url[...])
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
