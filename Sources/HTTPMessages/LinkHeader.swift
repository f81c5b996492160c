/// A link in a response (RFC 8288), such as a mirror, a description or the next page.
public struct Link: Sendable, Equatable {
    /// The URI reference as sent, often relative to the response's URL. It is empty if it refers to that URL itself. It
    /// contains no blanks and no control characters.
    public let target: String
    /// The parameters in order, with lower-case names and resolved quotes and escapes. Extended values such as `title*`
    /// are not decoded.
    public let parameters: [Parameter]

    /// A target attribute of a link (RFC 8288, section 3.4).
    public struct Parameter: Sendable, Equatable {
        /// The name in lower case.
        public let name: String
        /// The value without quotation marks and escapes.
        public let value: String

        /// Creates an attribute. The name must be in lower case.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Creates a link to a URL, which may be relative.
    public init(target: String, parameters: [Parameter] = []) {
        self.target = target
        self.parameters = parameters
    }

    /// Returns the first value of a parameter. The name must be in lower case.
    public func value(of name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// The relation types in lower case, such as `duplicate` or `describedby`. Only the first `rel` parameter is used
    /// (section 3.3).
    public var relations: [String] {
        (value(of: "rel") ?? "").utf8.split { FieldText.isBlank($0) }
            .map { String(decoding: $0, as: UTF8.self).lowercased() }
    }

    /// The link's context, if it differs from the response's own URL (section 3.2). Code that ignores anchors should
    /// skip links that have one.
    public var anchor: String? { value(of: "anchor") }
}

/// A parser for the `Link` field, by the algorithm of RFC 8288, appendix B.2.
enum LinkHeader {
    /// The maximum number of links in a response. Later ones are ignored.
    static let maximumLinks = 256
    /// The maximum number of parameters in a link. Later ones are ignored.
    static let maximumParameters = 32

    /// Parses a field line.
    ///
    /// - Parameter value: The value of a single field line.
    static func parse(_ value: some Sequence<UInt8>) -> [Link] {
        var rest = Array(value)[...]
        var links: [Link] = []
        while links.count < maximumLinks {
            skip(&rest) { FieldText.isBlank($0) || $0 == UInt8(ascii: ",") }
            guard rest.popFirst() == UInt8(ascii: "<"), let end = rest.firstIndex(of: UInt8(ascii: ">")) else { break }
            let target = FieldText.trimmed(rest[..<end])
            rest = rest[(end + 1)...]
            let parameters = parameters(&rest)
            // Text between the parameters and the comma is not part of the grammar.
            skip(&rest) { $0 != UInt8(ascii: ",") }
            if target.allSatisfy({ $0 > 0x20 && $0 != 0x7F }), let text = String(validating: target, as: UTF8.self) {
                links.append(Link(target: text, parameters: parameters))
            }
        }
        return links
    }

    private static func parameters(_ rest: inout ArraySlice<UInt8>) -> [Link.Parameter] {
        var found: [Link.Parameter] = []
        while true {
            skip(&rest, while: FieldText.isBlank)
            guard rest.first == UInt8(ascii: ";") else { return found }
            skip(&rest) { FieldText.isBlank($0) || $0 == UInt8(ascii: ";") }
            let name = take(&rest) { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") }
            var value: [UInt8] = []
            if rest.first == UInt8(ascii: "=") {
                rest = rest.dropFirst()
                skip(&rest, while: FieldText.isBlank)
                if rest.first == UInt8(ascii: "\"") {
                    value = FieldText.quotedString(&rest)
                } else {
                    value = Array(
                        FieldText.trimmed(take(&rest) { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") }))
                }
            }
            let text = String(decoding: FieldText.trimmed(name), as: UTF8.self).lowercased()
            if !text.isEmpty, found.count < maximumParameters {
                found.append(Link.Parameter(name: text, value: String(decoding: value, as: UTF8.self)))
            }
        }
    }

    private static func skip(_ rest: inout ArraySlice<UInt8>, while condition: (UInt8) -> Bool) {
        rest = rest.drop(while: condition)
    }

    private static func take(_ rest: inout ArraySlice<UInt8>, while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = rest.prefix(while: condition)
        rest = rest[taken.endIndex...]
        return taken
    }
}

extension ResponseHead {
    /// The response's links, in order (RFC 8288).
    public var links: [Link] {
        Array(values(of: "link").lazy.flatMap { LinkHeader.parse($0.utf8) }.prefix(LinkHeader.maximumLinks))
    }
}
