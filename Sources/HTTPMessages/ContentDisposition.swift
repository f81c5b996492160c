import FoundationEssentials

/// The file name in a `Content-Disposition` field (RFC 6266, with RFC 8187 for `filename*`).
enum ContentDisposition {
    /// The maximum number of parameters that are read.
    private static let maximumParameters = 16
    /// The maximum number of encoded words in a name.
    private static let maximumWords = 64

    /// Returns the suggested file name, preferring `filename*`. The name is as sent and not yet safe to use.
    static func fileName(_ value: String) -> String? {
        var plain: String?
        for (name, text) in parameters(Array(value.utf8)) {
            switch name {
            case "filename*": if let decoded = extended(text) { return decoded }
            case "filename": plain = plain ?? self.plain(text)
            default: break
            }
        }
        return plain
    }

    private static func parameters(_ bytes: [UInt8]) -> [(name: String, value: [UInt8])] {
        var found: [(String, [UInt8])] = []
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        // Some servers send the parameters without a type before them.
        let hasType = !bytes[..<end].contains(UInt8(ascii: "="))
        var index = hasType ? min(end + 1, bytes.endIndex) : bytes.startIndex
        while index < bytes.endIndex, found.count < maximumParameters {
            let start = index
            while index < bytes.endIndex, bytes[index] != UInt8(ascii: "="), bytes[index] != UInt8(ascii: ";") {
                index += 1
            }
            let name = String(decoding: bytes[start..<index], as: UTF8.self)
                .lowercased().filter { $0 != " " && $0 != "\t" }
            guard index < bytes.endIndex, bytes[index] == UInt8(ascii: "=") else {
                index += 1
                continue
            }
            index += 1
            while index < bytes.endIndex, FieldText.isBlank(bytes[index]) { index += 1 }
            var value: [UInt8] = []
            if index < bytes.endIndex, bytes[index] == UInt8(ascii: "\"") {
                index += 1
                while index < bytes.endIndex, bytes[index] != UInt8(ascii: "\"") {
                    // Before other characters a backslash is one: many servers send paths of Windows unescaped.
                    if bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.endIndex,
                        bytes[index + 1] == UInt8(ascii: "\"") || bytes[index + 1] == UInt8(ascii: "\\")
                    {
                        index += 1
                    }
                    value.append(bytes[index])
                    index += 1
                }
                while index < bytes.endIndex, bytes[index] != UInt8(ascii: ";") { index += 1 }
            } else {
                while index < bytes.endIndex, bytes[index] != UInt8(ascii: ";") {
                    value.append(bytes[index])
                    index += 1
                }
                while let last = value.last, FieldText.isBlank(last) { value.removeLast() }
            }
            found.append((name, value))
            index += 1
        }
        return found
    }

    /// Decodes an extended value such as `UTF-8''na%C3%AFve.txt` (RFC 8187, section 3.2).
    private static func extended(_ value: [UInt8]) -> String? {
        let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let decoded = percentDecoded(parts[2]) else { return nil }
        // Characters that are not encoded came as UTF-8, whatever the value says of itself.
        return isASCII(parts[2]) ? text(decoded, in: parts[0]) : String(validating: decoded, as: UTF8.self)
    }

    /// Decodes the value of `filename`. It has no encoding of its own, but servers use percent-encoding and encoded words
    /// (RFC 2047) all the same. They are decoded where that gives a name, and not a path or control characters.
    private static func plain(_ value: [UInt8]) -> String {
        let sent = String(decoding: value, as: UTF8.self)
        let decoded =
            encodedWords(value)
            ?? (value.contains(UInt8(ascii: "%"))
                ? percentDecoded(value[...]).flatMap { String(validating: $0, as: UTF8.self) } : nil)
        guard let decoded, isName(decoded) else { return sent }
        return decoded
    }

    private static func isASCII(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.allSatisfy { $0 < 0x80 } }

    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && text != "." && text != ".."
            && text.unicodeScalars.allSatisfy { scalar in
                scalar != "/" && scalar != "\\" && scalar.properties.generalCategory != .control
            }
    }

    /// Removes percent-encoding (RFC 3986, section 2.1).
    ///
    /// - Returns: `nil` if a percent sign is not followed by two hexadecimal digits.
    private static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let value = hexadecimal(&rest) else { return nil }
            decoded.append(value)
        }
        return decoded
    }

    /// Consumes two hexadecimal digits.
    private static func hexadecimal(_ bytes: inout ArraySlice<UInt8>) -> UInt8? {
        guard bytes.count >= 2, bytes.first != UInt8(ascii: "+"),
            let value = UInt8(String(decoding: bytes.prefix(2), as: UTF8.self), radix: 16)
        else { return nil }
        bytes = bytes.dropFirst(2)
        return value
    }

    /// Returns bytes in a named character set as text; `nil` if they are not valid in it, or if it is unknown.
    private static func text(_ bytes: [UInt8], in charset: ArraySlice<UInt8>) -> String? {
        switch String(decoding: charset, as: UTF8.self).lowercased() {
        case "utf-8", "utf8", "us-ascii": String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": String(String.UnicodeScalarView(bytes.lazy.map { Unicode.Scalar($0) }))
        default: nil
        }
    }

    /// Decodes encoded words, as in `=?UTF-8?Q?na=C3=AFve.txt?=` (RFC 2047).
    ///
    /// - Returns: `nil` if the value consists of anything but such words, with blanks between them.
    private static func encodedWords(_ value: [UInt8]) -> String? {
        guard value.starts(with: "=?".utf8), isASCII(value[...]) else { return nil }
        var decoded = ""
        // A character may be spread over words of one character set.
        var pending: (bytes: [UInt8], charset: ArraySlice<UInt8>) = ([], [])
        var rest = value[...]
        for _ in 0..<maximumWords {
            while let first = rest.first, FieldText.isBlank(first) { rest = rest.dropFirst() }
            if rest.isEmpty { return text(pending.bytes, in: pending.charset).map { decoded + $0 } }
            guard rest.starts(with: "=?".utf8) else { return nil }
            let parts = rest.dropFirst(2).split(
                separator: UInt8(ascii: "?"), maxSplits: 3, omittingEmptySubsequences: false)
            guard parts.count == 4, parts[3].first == UInt8(ascii: "=") else { return nil }
            // A language may follow the character set (RFC 2231, section 5).
            let charset = parts[0].prefix { $0 != UInt8(ascii: "*") }
            guard let bytes = word(parts[2], parts[1]) else { return nil }
            if !charset.elementsEqual(pending.charset) {
                if !pending.bytes.isEmpty {
                    guard let before = text(pending.bytes, in: pending.charset) else { return nil }
                    decoded += before
                }
                pending = ([], charset)
            }
            pending.bytes += bytes
            rest = parts[3].dropFirst()
        }
        return nil
    }

    private static func word(_ encoded: ArraySlice<UInt8>, _ encoding: ArraySlice<UInt8>) -> [UInt8]? {
        switch String(decoding: encoding, as: UTF8.self).lowercased() {
        case "b": return Data(base64Encoded: Data(encoded)).map { Array($0) }
        case "q":
            var decoded: [UInt8] = []
            var rest = encoded
            while let byte = rest.popFirst() {
                switch byte {
                case UInt8(ascii: "_"): decoded.append(0x20)
                case UInt8(ascii: "="):
                    guard let value = hexadecimal(&rest) else { return nil }
                    decoded.append(value)
                default: decoded.append(byte)
                }
            }
            return decoded
        default: return nil
        }
    }
}

extension ResponseHead {
    /// The file name suggested by the server, as sent. It is not yet safe to use.
    public var suggestedFileName: String? {
        value(of: "content-disposition").flatMap(ContentDisposition.fileName)
    }
}
