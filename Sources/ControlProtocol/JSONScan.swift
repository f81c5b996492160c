/// A validator that checks a text against JSON's grammar (RFC 8259) before anything is decoded. The check is needed
/// because the decoder is lenient: it accepts a trailing comma, numbers such as `099`, and the last of several values
/// under one key.
///
/// A value type without I/O. It scans the text in one pass, without recursion and without an allocation per value. The
/// time is linear in the length of the text, for any content.
public struct JSONScan {
    /// A reason for rejecting a text. Its description continues a sentence that begins with a name for the text.
    public enum Fault: Error, Sendable, Equatable, CustomStringConvertible {
        /// The text does not match the grammar.
        ///
        /// - Parameter offset: the position of the first byte that cannot be part of a JSON text; the length of the
        ///   text if it ends too early.
        case notJSON(offset: Int)
        case notText(offset: Int)
        case tooDeep
        case tooManyValues
        /// A key occurs twice in one object.
        ///
        /// - Parameter key: the key with its escapes resolved.
        case duplicateKey(String)

        public var description: String {
            switch self {
            case .notJSON(let offset): "is not JSON (byte \(offset + 1))"
            case .notText(let offset): "is not UTF-8 text (byte \(offset + 1))"
            case .tooDeep: "nests arrays and objects deeper than \(MessageLimits.nesting) levels"
            case .tooManyValues: "contains more than \(MessageLimits.values) values and keys"
            case .duplicateKey(let key): "contains the key \(printable(key)) twice in one object"
            }
        }
    }

    /// Validates `text`.
    ///
    /// - Returns: the fault, or `nil` if `text` is one JSON text in UTF-8 that nests no deeper than
    ///   ``MessageLimits/nesting``, holds no more than ``MessageLimits/values`` values, and contains no duplicate key
    ///   in an object.
    public static func fault(in text: some Collection<UInt8>) -> Fault? {
        func judge(_ bytes: UnsafeBufferPointer<UInt8>) -> Fault? {
            var scan = JSONScan()
            do throws(Fault) {
                try scan.run(bytes.span)
                return scan.duplicate.map { .duplicateKey($0) }
            } catch {
                return error
            }
        }
        return text.withContiguousStorageIfAvailable(judge) ?? Array(text).withUnsafeBufferPointer(judge)
    }

    /// The number of keys of one object that are compared one by one; an object with more keys uses a set.
    private static let comparedKeys = 64

    private struct Container {
        var isObject: Bool
        /// The index in `keys` of the object's first key.
        var firstKey: Int
        /// The object's keys with escapes resolved. It replaces `keys` for an object that has many keys or a key with
        /// escapes.
        var names: Set<[UInt8]>?
    }

    private enum Expectation {
        case value, valueOrEnd, key, keyOrEnd, commaOrEnd
    }

    private var index = 0
    /// The number of values and keys that have begun.
    private var values = 0
    private var open: [Container] = []
    /// Whether the innermost of `open` is an object.
    private var isInObject = false
    /// The positions in the text of the keys of all open objects, without quotation marks and with escapes unresolved.
    private var keys: [Range<Int>] = []
    /// The first duplicate key. It is reported only if the text is otherwise valid JSON.
    private var duplicate: String?

    private init() {}

    private mutating func run(_ text: borrowing Span<UInt8>) throws(Fault) {
        open.reserveCapacity(MessageLimits.nesting)
        var expected = Expectation.value
        while true {
            while index < text.count, Self.isBlank(text[index]) { index += 1 }
            guard index < text.count else {
                guard open.isEmpty, expected == .commaOrEnd else { throw .notJSON(offset: index) }
                return
            }
            let byte = text[index]
            if expected != .commaOrEnd {
                values += 1
                guard values <= MessageLimits.values else { throw .tooManyValues }
            }
            switch (expected, byte) {
            case (.value, UInt8(ascii: "{")), (.valueOrEnd, UInt8(ascii: "{")):
                try enter(isObject: true)
                expected = .keyOrEnd
            case (.value, UInt8(ascii: "[")), (.valueOrEnd, UInt8(ascii: "[")):
                try enter(isObject: false)
                expected = .valueOrEnd
            case (.valueOrEnd, UInt8(ascii: "]")):
                leave()
                expected = .commaOrEnd
            case (.value, _), (.valueOrEnd, _):
                try scalar(text)
                expected = .commaOrEnd
            case (.key, UInt8(ascii: "\"")), (.keyOrEnd, UInt8(ascii: "\"")):
                try key(text)
                expected = .value
            case (.keyOrEnd, UInt8(ascii: "}")):
                leave()
                expected = .commaOrEnd
            case (.commaOrEnd, UInt8(ascii: ",")):
                guard !open.isEmpty else { throw .notJSON(offset: index) }
                index += 1
                expected = isInObject ? .key : .value
            case (.commaOrEnd, UInt8(ascii: "}")):
                guard !open.isEmpty, isInObject else { throw .notJSON(offset: index) }
                leave()
            case (.commaOrEnd, UInt8(ascii: "]")):
                guard !open.isEmpty, !isInObject else { throw .notJSON(offset: index) }
                leave()
            default: throw .notJSON(offset: index)
            }
        }
    }

    // MARK: - Arrays and objects

    private mutating func enter(isObject: Bool) throws(Fault) {
        guard open.count < MessageLimits.nesting else { throw .tooDeep }
        index += 1
        open.append(Container(isObject: isObject, firstKey: keys.count))
        isInObject = isObject
    }

    private mutating func leave() {
        index += 1
        guard let container = open.popLast() else { return }
        isInObject = open.last?.isObject ?? false
        if keys.count > container.firstKey { keys.removeLast(keys.count - container.firstKey) }
    }

    /// Scans a key and the colon after it.
    private mutating func key(_ text: borrowing Span<UInt8>) throws(Fault) {
        let start = index + 1
        let hasEscapes = try string(text)
        if duplicate == nil { note(start..<(index - 1), hasEscapes: hasEscapes, text) }
        while index < text.count, Self.isBlank(text[index]) { index += 1 }
        guard index < text.count, text[index] == UInt8(ascii: ":") else { throw .notJSON(offset: index) }
        index += 1
    }

    private mutating func note(_ key: Range<Int>, hasEscapes: Bool, _ text: borrowing Span<UInt8>) {
        let last = open.count - 1
        let first = open[last].firstKey
        if open[last].names == nil {
            guard hasEscapes || keys.count - first >= Self.comparedKeys else {
                for other in first..<keys.count where Self.areEqual(keys[other], key, text) {
                    duplicate = Self.name(key, text)
                    return
                }
                keys.append(key)
                return
            }
            var names: Set<[UInt8]> = []
            for other in first..<keys.count { names.insert(Self.unescaped(keys[other], text)) }
            keys.removeLast(keys.count - first)
            open[last].names = names
        }
        if open[last].names?.insert(Self.unescaped(key, text)).inserted == false { duplicate = Self.name(key, text) }
    }

    private static func areEqual(_ one: Range<Int>, _ other: Range<Int>, _ text: borrowing Span<UInt8>) -> Bool {
        guard one.count == other.count else { return false }
        var offset = 0
        while offset < one.count {
            if text[one.lowerBound + offset] != text[other.lowerBound + offset] { return false }
            offset += 1
        }
        return true
    }

    private static func name(_ key: Range<Int>, _ text: borrowing Span<UInt8>) -> String {
        String(decoding: unescaped(key, text), as: UTF8.self)
    }

    // MARK: - Values without others in them

    private mutating func scalar(_ text: borrowing Span<UInt8>) throws(Fault) {
        switch text[index] {
        case UInt8(ascii: "\""): _ = try string(text)
        case UInt8(ascii: "t"): try word("true", text)
        case UInt8(ascii: "f"): try word("false", text)
        case UInt8(ascii: "n"): try word("null", text)
        default: try number(text)
        }
    }

    private mutating func word(_ word: StaticString, _ text: borrowing Span<UInt8>) throws(Fault) {
        for offset in 0..<word.utf8CodeUnitCount {
            guard index < text.count, text[index] == word.utf8Start[offset] else { throw .notJSON(offset: index) }
            index += 1
        }
    }

    /// Scans a number (RFC 8259, section 6).
    private mutating func number(_ text: borrowing Span<UInt8>) throws(Fault) {
        func next(_ index: Int) -> UInt8 { index < text.count ? text[index] : 0 }
        if next(index) == UInt8(ascii: "-") { index += 1 }
        if next(index) == UInt8(ascii: "0") {
            index += 1
        } else {
            try digits(text)
        }
        if next(index) == UInt8(ascii: ".") {
            index += 1
            try digits(text)
        }
        if next(index) | 0x20 == UInt8(ascii: "e") {
            index += 1
            if next(index) == UInt8(ascii: "+") || next(index) == UInt8(ascii: "-") { index += 1 }
            try digits(text)
        }
    }

    /// Scans one or more digits.
    private mutating func digits(_ text: borrowing Span<UInt8>) throws(Fault) {
        let start = index
        while index < text.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[index]) { index += 1 }
        guard index > start else { throw .notJSON(offset: index) }
    }

    // MARK: - Strings

    /// Scans a string (RFC 8259, section 7) from its opening quotation mark to past the closing one.
    ///
    /// - Returns: whether the string contains an escape.
    private mutating func string(_ text: borrowing Span<UInt8>) throws(Fault) -> Bool {
        var hasEscapes = false
        index += 1
        while index < text.count {
            let byte = text[index]
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return hasEscapes
            case UInt8(ascii: "\\"):
                hasEscapes = true
                try escape(text)
            case 0x20..<0x80: index += 1
            case 0x80...: try character(text)
            default: throw .notJSON(offset: index)
            }
        }
        throw .notJSON(offset: index)
    }

    private mutating func escape(_ text: borrowing Span<UInt8>) throws(Fault) {
        index += 1
        guard index < text.count else { throw .notJSON(offset: index) }
        switch text[index] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            index += 1
        case UInt8(ascii: "u"):
            index += 1
            for _ in 0..<4 {
                guard index < text.count, Self.hexDigit(text[index]) != nil else { throw .notJSON(offset: index) }
                index += 1
            }
        default: throw .notJSON(offset: index)
        }
    }

    /// Scans a character of several bytes in UTF-8 (RFC 3629, section 4).
    private mutating func character(_ text: borrowing Span<UInt8>) throws(Fault) {
        let (count, second): (Int, ClosedRange<UInt8>) =
            switch text[index] {
            case 0xC2...0xDF: (2, 0x80...0xBF)
            case 0xE0: (3, 0xA0...0xBF)
            case 0xE1...0xEC, 0xEE...0xEF: (3, 0x80...0xBF)
            case 0xED: (3, 0x80...0x9F)
            case 0xF0: (4, 0x90...0xBF)
            case 0xF1...0xF3: (4, 0x80...0xBF)
            case 0xF4: (4, 0x80...0x8F)
            default: throw .notText(offset: index)
            }
        guard index + count <= text.count, second.contains(text[index + 1]) else { throw .notText(offset: index) }
        for offset in 2..<max(count, 2) where text[index + offset] & 0xC0 != 0x80 { throw .notText(offset: index) }
        index += count
    }

    /// Returns the string in `range` with its escapes resolved, as UTF-8. A lone surrogate is encoded as three bytes,
    /// as if it were a character.
    private static func unescaped(_ range: Range<Int>, _ text: borrowing Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var index = range.lowerBound
        func unit(_ index: Int) -> UInt32 {
            (index..<index + 4).reduce(0) { $0 << 4 | UInt32(hexDigit(text[$1]) ?? 0) }
        }
        while index < range.upperBound {
            let byte = text[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            let mark = text[index]
            index += 1
            switch mark {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"):
                var value = unit(index)
                index += 4
                if value & 0xFC00 == 0xD800, index + 6 <= range.upperBound, text[index] == UInt8(ascii: "\\"),
                    text[index + 1] == UInt8(ascii: "u"), unit(index + 2) & 0xFC00 == 0xDC00
                {
                    value = 0x10000 + (value & 0x3FF) << 10 + unit(index + 2) & 0x3FF
                    index += 6
                }
                append(value, to: &bytes)
            default: bytes.append(mark)
            }
        }
        return bytes
    }

    private static func append(_ value: UInt32, to bytes: inout [UInt8]) {
        func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8(value >> shift & 0x3F) }
        switch value {
        case ..<0x80: bytes.append(UInt8(value))
        case ..<0x800: bytes += [0xC0 | UInt8(value >> 6), tail(0)]
        case ..<0x10000: bytes += [0xE0 | UInt8(value >> 12), tail(6), tail(0)]
        default: bytes += [0xF0 | UInt8(value >> 18), tail(12), tail(6), tail(0)]
        }
    }

    // MARK: - Bytes

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
