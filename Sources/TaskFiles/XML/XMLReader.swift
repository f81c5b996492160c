/// A pull parser for XML 1.0 with namespaces that returns one tag at a time from bytes in memory.
///
/// Only UTF-8, UTF-16 and ISO 8859-1 without a document type definition are accepted. Therefore no entities exist other than the five
/// predefined ones, and nothing outside the bytes is ever accessed. The parser makes one pass without recursion, and
/// every length is limited; the time is linear in the length of the text.
struct XMLReader {
    enum Limit {
        /// The maximum nesting depth of elements.
        static let depth = 64
        static let attributes = 32
        /// The maximum number of bytes in a name with its prefix.
        static let nameLength = 256
        /// The maximum number of bytes in an attribute's value, and in the text of an element that is kept.
        static let textLength = 65_536
    }

    enum Tag {
        case start(XMLElement)
        /// The end of an element, whose text is in ``XMLReader/text``.
        case end
    }

    let source: XMLSource
    /// Whether text is kept. Each tag resets this to `false`.
    var keepsText = false
    /// The text of the innermost element since its start tag, if it was kept.
    private(set) var text: [UInt8] = []

    private let bytes: [UInt8]
    private var index = 0
    private var open: [OpenElement] = []
    private var namespaces = XMLNamespaces()
    private var hasRoot = false
    /// Whether the last tag was an empty-element tag, so that ``next()`` returns its end next.
    private var endsAtOnce = false

    private struct OpenElement {
        /// The name as written, with its prefix.
        var name: ArraySlice<UInt8>
        var start: Int
    }

    /// Creates a parser and reads the XML declaration.
    ///
    /// - Parameter file: the name to print in messages.
    /// - Throws: ``FileError`` for a text that is longer than ``XMLSource/maximumSize`` or not UTF-8, or for an invalid
    ///   XML declaration.
    init(_ bytes: [UInt8], file: String) throws(FileError) {
        source = try XMLSource(bytes, file: file)
        self.bytes = source.bytes
        try readDeclaration()
    }

    /// Returns the next tag.
    ///
    /// - Returns: `nil` at the end of the document.
    /// - Throws: ``FileError`` at the first position that is not well-formed, exceeds a limit, or is a document type
    ///   definition.
    mutating func next() throws(FileError) -> Tag? {
        if endsAtOnce {
            endsAtOnce = false
            leave()
            return .end
        }
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "<") else {
                try readText()
                continue
            }
            let start = index
            switch index + 1 < bytes.count ? bytes[index + 1] : 0 {
            case UInt8(ascii: "/"):
                try readEndTag()
                return .end
            case UInt8(ascii: "?"): try skipInstruction()
            case UInt8(ascii: "!"): try readMarkup(at: start)
            default: return .start(try readStartTag())
            }
        }
        if let innermost = open.last {
            throw source.fault(at: innermost.start, "the element \(source.shown(innermost.name)) is not closed")
        }
        guard hasRoot else { throw source.fault(at: index, "contains no element") }
        return nil
    }

    private mutating func leave() {
        open.removeLast()
        namespaces.pop()
        keepsText = false
    }

    // MARK: - Tags

    private mutating func readStartTag() throws(FileError) -> XMLElement {
        let start = index
        index += 1
        let name = try readName("a tag")
        if open.isEmpty, hasRoot {
            throw source.fault(at: start, "a document has one root element, and this is a second one")
        }
        guard open.count < Limit.depth else {
            throw source.fault(at: start, "elements nest deeper than \(Limit.depth)")
        }
        var attributes: [(name: ArraySlice<UInt8>, value: String, offset: Int)] = []
        var isEmpty = false
        while true {
            let isSeparated = skipBlanks()
            guard index < bytes.count else { throw source.fault(at: start, "the tag is not closed") }
            if bytes[index] == UInt8(ascii: ">") {
                index += 1
                break
            }
            if bytes[index] == UInt8(ascii: "/") {
                guard index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: ">") else {
                    throw source.fault(at: index, "a slash here must be followed by >")
                }
                index += 2
                isEmpty = true
                break
            }
            guard isSeparated else { throw source.fault(at: index, "a space is missing here") }
            let offset = index
            let attribute = try readName("an attribute")
            if attributes.contains(where: { $0.name == attribute }) {
                throw source.fault(at: offset, "the attribute \(source.shown(attribute)) is given twice")
            }
            guard attributes.count < Limit.attributes else {
                throw source.fault(at: offset, "the tag has more than \(Limit.attributes) attributes")
            }
            _ = skipBlanks()
            guard index < bytes.count, bytes[index] == UInt8(ascii: "=") else {
                throw source.fault(at: index, "an attribute's name must be followed by =")
            }
            index += 1
            _ = skipBlanks()
            attributes.append((attribute, try readValue(), offset))
        }
        hasRoot = true
        open.append(OpenElement(name: name, start: start))
        endsAtOnce = isEmpty
        keepsText = false
        text.removeAll(keepingCapacity: true)
        return try named(name, attributes, start: start)
    }

    /// Resolves the prefixes (Namespaces in XML 1.0, sections 3 and 6).
    private mutating func named(
        _ name: ArraySlice<UInt8>, _ attributes: [(name: ArraySlice<UInt8>, value: String, offset: Int)], start: Int
    ) throws(FileError) -> XMLElement {
        namespaces.push()
        for (name, value, offset) in attributes {
            if name.elementsEqual("xmlns".utf8) {
                namespaces.bind("", to: value)
            } else if name.starts(with: "xmlns:".utf8) {
                guard !value.isEmpty, name.count > 6 else {
                    throw source.fault(at: offset, "a prefix needs a name and a namespace")
                }
                namespaces.bind(String(decoding: name.dropFirst(6), as: UTF8.self), to: value)
            }
        }
        let (prefix, local) = try split(name, at: start + 1)
        guard let namespace = namespaces.namespace(of: prefix ?? "") else {
            throw source.fault(at: start, "the prefix of \(source.shown(name)) is bound to no namespace")
        }
        var plain: [XMLElement.Attribute] = []
        for (name, value, offset) in attributes where !name.starts(with: "xmlns".utf8) {
            let (prefix, local) = try split(name, at: offset)
            // An attribute without a prefix is in no namespace.
            guard let prefix else {
                plain.append(XMLElement.Attribute(name: local, value: value, offset: offset))
                continue
            }
            guard namespaces.namespace(of: prefix) != nil else {
                throw source.fault(at: offset, "the prefix of \(source.shown(name)) is bound to no namespace")
            }
        }
        return XMLElement(namespace: namespace, name: local, attributes: plain, offset: start)
    }

    private func split(
        _ name: ArraySlice<UInt8>, at offset: Int
    ) throws(FileError) -> (prefix: String?, local: String) {
        guard let colon = name.firstIndex(of: UInt8(ascii: ":")) else {
            return (nil, String(decoding: name, as: UTF8.self))
        }
        let (prefix, local) = (name[..<colon], name[(colon + 1)...])
        guard !prefix.isEmpty, !local.isEmpty, !local.contains(UInt8(ascii: ":")) else {
            throw source.fault(at: offset, "\(source.shown(name)) is not a valid name with a prefix")
        }
        return (String(decoding: prefix, as: UTF8.self), String(decoding: local, as: UTF8.self))
    }

    private mutating func readEndTag() throws(FileError) {
        let start = index
        index += 2
        let name = try readName("a tag")
        _ = skipBlanks()
        guard index < bytes.count, bytes[index] == UInt8(ascii: ">") else {
            throw source.fault(at: start, "the tag is not closed")
        }
        index += 1
        guard let innermost = open.last else {
            throw source.fault(at: start, "\(source.shown(name)) is closed but was not opened")
        }
        guard innermost.name == name else {
            throw source.fault(
                at: start, "closes \(source.shown(name)) where \(source.shown(innermost.name)) must be closed first")
        }
        leave()
    }

    // MARK: - Text

    private mutating func readText() throws(FileError) {
        let end = source.index(of: UInt8(ascii: "<"), from: index) ?? bytes.count
        guard !open.isEmpty else {
            let stray = bytes[index..<end].firstIndex { !XMLSource.isBlank($0) }
            if let stray { throw source.fault(at: stray, "text is not allowed outside the root element") }
            index = end
            return
        }
        while index < end {
            switch bytes[index] {
            case UInt8(ascii: "&"): try keep(readReference())
            case UInt8(ascii: "]") where source.has("]]>", at: index):
                throw source.fault(at: index, "]]> is not allowed outside a CDATA section")
            default: try keepByte()
            }
        }
    }

    /// Consumes one byte. Each form of line end is normalised to one LF (XML 1.0, section 2.11).
    private mutating func keepByte() throws(FileError) {
        let byte = bytes[index]
        index += 1
        if byte == 0x0D {
            if index < bytes.count, bytes[index] == 0x0A { index += 1 }
            try keep([0x0A])
        } else if keepsText {
            try keep(CollectionOfOne(byte))
        }
    }

    private mutating func keep(_ more: some Collection<UInt8>) throws(FileError) {
        guard keepsText else { return }
        guard text.count + more.count <= Limit.textLength else {
            throw source.fault(at: index, "the text of an element is longer than \(Limit.textLength >> 10) KiB")
        }
        text += more
    }

    /// Reads a character reference such as `&#38;`, or a reference to a predefined entity such as `&amp;` (XML 1.0,
    /// sections 4.1 and 4.6).
    private mutating func readReference() throws(FileError) -> [UInt8] {
        let start = index
        // The longest valid reference is `&#x10FFFF;`; the limit leaves room for leading zeros.
        let end = bytes[index..<min(index + 16, bytes.count)].firstIndex(of: UInt8(ascii: ";"))
        guard let end else {
            throw source.fault(at: start, "& must begin a reference; write &amp; for the character &")
        }
        let name = bytes[(start + 1)..<end]
        index = end + 1
        if name.first == UInt8(ascii: "#") {
            guard let scalar = XMLSource.scalar(ofReference: name.dropFirst()) else {
                throw source.fault(at: start, "the reference \(source.shown(name)) is not a valid character")
            }
            return Array(String(scalar).utf8)
        }
        let entities: [(String, String)] = [("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'")]
        guard let entity = entities.first(where: { name.elementsEqual($0.0.utf8) }) else {
            throw source.fault(at: start, "the entity \(source.shown(name)) is not one of the five that XML predefines")
        }
        return Array(entity.1.utf8)
    }

    /// Reads a comment or a CDATA section.
    private mutating func readMarkup(at start: Int) throws(FileError) {
        if source.has("<!--", at: start) {
            guard let end = source.index(of: "--", from: start + 4) else {
                throw source.fault(at: start, "the comment is not closed")
            }
            guard source.has("-->", at: end) else { throw source.fault(at: end, "a comment must not contain --") }
            index = end + 3
        } else if source.has("<![CDATA[", at: start), !open.isEmpty {
            guard let end = source.index(of: "]]>", from: start + 9) else {
                throw source.fault(at: start, "the CDATA section is not closed")
            }
            index = start + 9
            while index < end { try keepByte() }
            index = end + 3
        } else if source.has("<!DOCTYPE", at: start) {
            throw source.fault(at: start, "is a document type definition, which dld does not accept; remove it")
        } else {
            throw source.fault(at: start, "is not XML")
        }
    }

    // MARK: - Parts of tags

    private mutating func readValue() throws(FileError) -> String {
        let start = index
        guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") || bytes[index] == UInt8(ascii: "'") else {
            throw source.fault(at: index, "an attribute's value must be in quotation marks")
        }
        let mark = bytes[index]
        index += 1
        var value: [UInt8] = []
        while index < bytes.count, bytes[index] != mark {
            guard value.count < Limit.textLength else {
                throw source.fault(at: start, "the value is longer than \(Limit.textLength >> 10) KiB")
            }
            switch bytes[index] {
            case UInt8(ascii: "<"): throw source.fault(at: index, "an attribute's value must not contain <; write &lt;")
            case UInt8(ascii: "&"): value += try readReference()
            case 0x09, 0x0A, 0x0D:
                if source.has("\r\n", at: index) { index += 1 }
                value.append(0x20)
                index += 1
            default:
                value.append(bytes[index])
                index += 1
            }
        }
        guard index < bytes.count else { throw source.fault(at: start, "the value is not closed") }
        index += 1
        return String(decoding: value, as: UTF8.self)
    }

    private mutating func readName(_ what: String) throws(FileError) -> ArraySlice<UInt8> {
        let start = index
        while index < bytes.count, XMLSource.isNameByte(bytes[index]) { index += 1 }
        let name = bytes[start..<index]
        guard let first = name.first, XMLSource.beginsName(first) else {
            throw source.fault(
                at: start, "the name of \(what) is missing here; write & and < in text as &amp; and &lt;")
        }
        guard name.count <= Limit.nameLength else {
            throw source.fault(at: start, "the name is longer than \(Limit.nameLength) bytes")
        }
        return name
    }

    /// Skips white space.
    ///
    /// - Returns: whether there was any.
    private mutating func skipBlanks() -> Bool {
        let start = index
        while index < bytes.count, XMLSource.isBlank(bytes[index]) { index += 1 }
        return index > start
    }

    // MARK: - Instructions

    private mutating func skipInstruction() throws(FileError) {
        let start = index
        index += 2
        let target = try readName("an instruction")
        guard String(decoding: target, as: UTF8.self).lowercased() != "xml" else {
            throw source.fault(at: start, "an XML declaration is allowed only at the beginning of a file")
        }
        guard let end = source.index(of: "?>", from: index) else {
            throw source.fault(at: start, "the instruction is not closed")
        }
        index = end + 2
    }

    /// Reads `<?xml version="1.0" encoding="UTF-8"?>`. Encodings other than UTF-8 and US-ASCII are rejected.
    private mutating func readDeclaration() throws(FileError) {
        guard source.has("<?xml", at: 0), bytes.count > 5, XMLSource.isBlank(bytes[5]) else { return }
        index = 5
        while skipBlanks(), index < bytes.count, bytes[index] != UInt8(ascii: "?") {
            let offset = index
            let name = try readName("an attribute")
            _ = skipBlanks()
            guard index < bytes.count, bytes[index] == UInt8(ascii: "=") else {
                throw source.fault(at: index, "an attribute's name must be followed by =")
            }
            index += 1
            _ = skipBlanks()
            let value = try readValue().lowercased()
            if name.elementsEqual("encoding".utf8), !XMLSource.encodings.contains(value) {
                let shown = source.shown(Array(value.utf8)[...])
                throw source.fault(at: offset, "the encoding \(shown) is none of UTF-8, UTF-16 and ISO-8859-1")
            }
            if name.elementsEqual("version".utf8), value != "1.0" {
                throw source.fault(at: offset, "is not XML 1.0")
            }
        }
        guard source.has("?>", at: index) else { throw source.fault(at: 0, "the XML declaration is not closed") }
        index += 2
    }
}

/// A start tag.
struct XMLElement {
    struct Attribute {
        var name: String
        var value: String
        /// The byte offset of the attribute from the beginning.
        var offset: Int
    }

    /// The namespace; empty for none.
    var namespace: String
    /// The name without its prefix.
    var name: String
    /// The attributes without a prefix.
    var attributes: [Attribute]
    /// The byte offset of the tag from the beginning.
    var offset: Int

    func attribute(_ name: String) -> Attribute? { attributes.first { $0.name == name } }
}
