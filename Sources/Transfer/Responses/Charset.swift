import FoundationEssentials

/// A character encoding of text.
enum Charset: Equatable {
    case utf8
    /// ISO 8859-1, whose bytes are the first 256 code points.
    case latin1
    case windows1252
    /// The encoding with this name for iconv(3).
    case converted(String)

    private static let utf16LittleEndian = Charset.converted("UTF-16LE")
    private static let utf16BigEndian = Charset.converted("UTF-16BE")

    /// Creates the encoding of text that begins with a byte order mark (WHATWG Encoding Standard, section 6, "BOM
    /// sniff").
    init?(markOf data: Data) {
        let start = Array(data.prefix(3))
        if start == Self.mark8 {
            self = .utf8
        } else if start.starts(with: [0xFF, 0xFE]) {
            self = Self.utf16LittleEndian
        } else if start.starts(with: [0xFE, 0xFF]) {
            self = Self.utf16BigEndian
        } else {
            return nil
        }
    }

    private static let mark8: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Creates an encoding from the name that a response gives.
    init(_ name: String) {
        let name = name.lowercased()
        self =
            switch name {
            // US-ASCII is a subset of UTF-8.
            case "utf-8", "utf8", "us-ascii", "ascii": .utf8
            case "iso-8859-1", "iso8859-1", "latin1", "l1": .latin1
            case "windows-1252", "cp1252": .windows1252
            // The order of bytes is that of the WHATWG Encoding Standard, section 4.2.
            case "utf-16", "utf16": Self.utf16LittleEndian
            default: .converted(Self.supersets[name] ?? name)
            }
    }

    /// The encodings that stand for a smaller one, because senders name the smaller one for both (WHATWG Encoding
    /// Standard, section 4.2).
    private static let supersets = [
        "gb2312": "GB18030", "gbk": "GB18030", "x-gbk": "GB18030", "shift_jis": "CP932", "shift-jis": "CP932",
        "sjis": "CP932", "x-sjis": "CP932", "euc-kr": "CP949", "ks_c_5601-1987": "CP949", "iso-8859-9": "CP1254",
        "iso-8859-11": "CP874", "tis-620": "CP874",
    ]

    /// Creates an encoding of Foundation; `nil` if it is not supported.
    init?(_ encoding: String.Encoding) {
        switch encoding {
        case .utf8: self = .utf8
        case .isoLatin1: self = .latin1
        case .windowsCP1252: self = .windows1252
        default:
            guard let name = Self.names[encoding] else { return nil }
            self.init(name)
        }
    }

    private static let names: [String.Encoding: String] = [
        // `ascii` in upper case is the strict encoding of iconv(3).
        .ascii: "ansi_x3.4-1968", .utf16: "utf-16", .utf16LittleEndian: "utf-16le", .utf16BigEndian: "utf-16be",
        .utf32: "utf-32", .utf32LittleEndian: "utf-32le", .utf32BigEndian: "utf-32be", .isoLatin2: "iso-8859-2",
        .windowsCP1250: "cp1250", .windowsCP1251: "cp1251", .windowsCP1253: "cp1253", .windowsCP1254: "cp1254",
        .japaneseEUC: "euc-jp", .shiftJIS: "shift_jis", .iso2022JP: "iso-2022-jp", .macOSRoman: "macintosh",
    ]

    /// Decodes text, without its byte order mark.
    func text(of data: Data) throws(TransferError) -> String {
        if data.isEmpty { return "" }
        switch self {
        case .utf8: return try Self.text(utf8: data.starts(with: Self.mark8) ? data.dropFirst(3) : data)
        case .latin1: return String(String.UnicodeScalarView(data.map { Unicode.Scalar($0) }))
        case .windows1252:
            return String(String.UnicodeScalarView(data.map { Self.highWindows1252[$0] ?? Unicode.Scalar($0) }))
        case .converted(var name):
            guard Self.isName(name) else { throw Self.unknown(name) }
            // A caller may have said UTF-16 without an order of bytes.
            if self == Self.utf16LittleEndian, data.starts(with: [0xFE, 0xFF]) { name = "UTF-16BE" }
            guard let converter = CharacterConverter(from: name) else { throw Self.unknown(name) }
            let bytes = try converter.utf8(data)
            let hasMark = Self.isUnicode(name) && bytes.starts(with: Self.mark8)
            return try Self.text(utf8: hasMark ? bytes[3...] : bytes[...])
        }
    }

    private static func text(utf8: some Sequence<UInt8>) throws(TransferError) -> String {
        guard let text = String(validating: utf8, as: UTF8.self) else {
            throw TransferError(.serializationFailed, "the body is not UTF-8 text")
        }
        return text
    }

    private static func isUnicode(_ name: String) -> Bool {
        ["utf", "ucs"].contains { name.lowercased().hasPrefix($0) }
    }

    /// Returns whether a text can be the name of a charset (RFC 2978, section 2.3). glibc would take a `/` for the
    /// beginning of an option, and an empty name for the charset of the locale.
    private static func isName(_ name: String) -> Bool {
        (1...40).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "-_.:+()".utf8.contains(byte)
                }
            }
    }

    private static func unknown(_ name: String) -> TransferError {
        TransferError(.serializationFailed, "the charset \(String(name.prefix(40)).debugDescription) is unknown")
    }

    /// The characters in which windows-1252 differs from ISO 8859-1 (WHATWG Encoding Standard, index windows-1252).
    private static let highWindows1252: [UInt8: Unicode.Scalar] = {
        let scalars = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars
        return Dictionary(uniqueKeysWithValues: zip(UInt8(0x80)...0x9F, scalars))
    }()
}
