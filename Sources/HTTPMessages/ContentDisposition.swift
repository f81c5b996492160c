/// The file name in a `Content-Disposition` field (RFC 6266, with RFC 8187 for `filename*`).
enum ContentDisposition {
    /// Returns the suggested file name, preferring `filename*`. The name is as sent and not yet safe to use.
    static func fileName(_ value: String) -> String? {
        var plain: String?
        for (name, text) in parameters(Array(value.utf8)) {
            switch name {
            case "filename*": if let decoded = extended(text) { return decoded }
            case "filename": plain = plain ?? String(decoding: text, as: UTF8.self)
            default: break
            }
        }
        return plain
    }

    private static func parameters(_ bytes: [UInt8]) -> [(name: String, value: [UInt8])] {
        var found: [(String, [UInt8])] = []
        var index = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        while index < bytes.endIndex, found.count < 16 {
            index += 1
            let start = index
            while index < bytes.endIndex, bytes[index] != UInt8(ascii: "="), bytes[index] != UInt8(ascii: ";") {
                index += 1
            }
            let name = String(decoding: bytes[start..<index], as: UTF8.self)
                .lowercased().filter { $0 != " " && $0 != "\t" }
            guard index < bytes.endIndex, bytes[index] == UInt8(ascii: "=") else { continue }
            index += 1
            while index < bytes.endIndex, bytes[index] == 0x20 || bytes[index] == 0x09 { index += 1 }
            var value: [UInt8] = []
            if index < bytes.endIndex, bytes[index] == UInt8(ascii: "\"") {
                index += 1
                while index < bytes.endIndex, bytes[index] != UInt8(ascii: "\"") {
                    if bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.endIndex { index += 1 }
                    value.append(bytes[index])
                    index += 1
                }
                while index < bytes.endIndex, bytes[index] != UInt8(ascii: ";") { index += 1 }
            } else {
                while index < bytes.endIndex, bytes[index] != UInt8(ascii: ";") {
                    value.append(bytes[index])
                    index += 1
                }
                while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
            }
            found.append((name, value))
        }
        return found
    }

    /// Decodes an extended value such as `UTF-8''na%C3%AFve.txt`.
    private static func extended(_ value: [UInt8]) -> String? {
        let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, String(decoding: parts[0], as: UTF8.self).lowercased() == "utf-8" else { return nil }
        var decoded: [UInt8] = []
        var rest = parts[2]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard rest.count >= 2, rest.first != UInt8(ascii: "+"),
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            decoded.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: decoded, as: UTF8.self)
    }
}

extension ResponseHead {
    /// The file name suggested by the server, as sent. It is not yet safe to use.
    public var suggestedFileName: String? {
        value(of: "content-disposition").flatMap(ContentDisposition.fileName)
    }
}
