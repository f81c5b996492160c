/// A link that an answer names (RFC 8288): a mirror, a description, the next page.
public struct Link: Sendable, Equatable {
    /// A URI reference as sent, often relative to the answer's URL; empty where it means that URL itself. Without
    /// blanks and control characters.
    public let target: String
    /// In order, names in lower case, quotes and escapes resolved; `title*` and its like as they came.
    public let parameters: [Parameter]

    /// One of a link's attributes (RFC 8288, section 3.4).
    public struct Parameter: Sendable, Equatable {
        /// Lower case.
        public let name: String
        /// Without quotation marks and escapes.
        public let value: String

        /// An attribute; its name in lower case.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A link to a URL, possibly a relative one.
    public init(target: String, parameters: [Parameter] = []) {
        self.target = target
        self.parameters = parameters
    }

    /// The first value of a parameter; its name in lower case.
    public func value(of name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// What the target is to the answer, in lower case: `duplicate`, `describedby`. Only the first `rel` counts
    /// (section 3.3).
    public var relations: [String] {
        (value(of: "rel") ?? "").utf8.split { FieldText.isBlank($0) }
            .map { String(decoding: $0, as: UTF8.self).lowercased() }
    }

    /// Where the link starts, if not at the answer's own URL (section 3.2). Whoever does not look at it should pass
    /// over links that have one.
    public var anchor: String? { value(of: "anchor") }
}

/// The `Link` field, by the algorithm of RFC 8288, appendix B.2.
enum LinkHeader {
    /// Links of one answer; those that follow are passed over.
    static let maximumLinks = 256
    /// Parameters of one link; those that follow are passed over.
    static let maximumParameters = 32

    /// - Parameter value: of one line.
    static func parse(_ value: some Sequence<UInt8>) -> [Link] {
        var rest = Array(value)[...]
        var links: [Link] = []
        while links.count < maximumLinks {
            skip(&rest) { FieldText.isBlank($0) || $0 == UInt8(ascii: ",") }
            guard rest.popFirst() == UInt8(ascii: "<"), let end = rest.firstIndex(of: UInt8(ascii: ">")) else { break }
            let target = FieldText.trimmed(rest[..<end])
            rest = rest[(end + 1)...]
            let parameters = parameters(&rest)
            // What follows up to the comma is no part of the grammar.
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
    /// The answer's links, in order (RFC 8288).
    public var links: [Link] {
        Array(values(of: "link").lazy.flatMap { LinkHeader.parse($0.utf8) }.prefix(LinkHeader.maximumLinks))
    }
}
