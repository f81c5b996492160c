extension CurlURL {
    /// Returns a URL without spaces at its ends and with every character percent-encoded that a request must not
    /// contain (WHATWG URL Standard, sections 1.3 and 4.4). Other text, such as existing escapes, stays as it is, and
    /// so does the host.
    ///
    /// - Parameter text: an absolute URL, or a reference relative to one.
    static func percentEncoded(_ text: String) -> String {
        let bytes = trimmed(Array(text.utf8)[...])
        let parts = Parts(bytes)
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count)
        for (index, byte) in zip(bytes.indices, bytes) {
            if parts.set(at: index).contains(byte) {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(digit(byte >> 4))
                encoded.append(digit(byte & 15))
            } else {
                encoded.append(byte)
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Whether ``percentEncoded(_:)`` leaves a text as it is.
    static func isPercentEncoded(_ text: String) -> Bool {
        // The characters of all sets together; most URLs contain none of them.
        all(of: text) { byte in
            byte < 0x40 ? lowerSet & 1 &<< byte == 0 : byte < 0x80 && upperSet & 1 &<< (byte - 0x40) == 0
        }
    }

    /// Returns whether all bytes of a text satisfy a predicate. An iterator of `utf8` costs several times as much.
    static func all(of text: String, _ satisfies: (UInt8) -> Bool) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(satisfies) } ?? text.utf8.allSatisfy(satisfies)
    }

    /// The ASCII characters below 0x40 that are in any of the sets: bit n stands for character n.
    private static let lowerSet: UInt64 = 0x5000_0085_FFFF_FFFF
    /// The ASCII characters from 0x40 on that are in any of the sets: bit n stands for character 0x40 + n.
    private static let upperSet: UInt64 = 0xB800_0001_4000_0000

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while let first = bytes.first, first == UInt8(ascii: " ") { bytes.removeFirst() }
        while let last = bytes.last, last == UInt8(ascii: " ") { bytes.removeLast() }
        return bytes
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + (value - 10)
    }

    /// The characters of one part of a URL that are percent-encoded.
    private enum EncodeSet {
        case none, userInfo, path, query, fragment

        func contains(_ byte: UInt8) -> Bool {
            if self == .none { return false }
            switch byte {
            case 0x80..., 0...0x1F, 0x7F, UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"):
                return true
            case UInt8(ascii: "`"): return self != .query
            case UInt8(ascii: "^"), UInt8(ascii: "{"), UInt8(ascii: "}"): return self != .query && self != .fragment
            case UInt8(ascii: "'"): return self == .query
            case UInt8(ascii: "|"): return self == .userInfo
            default: return false
            }
        }
    }

    /// The parts of a URL, as the positions at which they end.
    private struct Parts {
        private var userInfoEnd: Int
        private var hostEnd: Int
        private var pathEnd: Int
        private var queryEnd: Int

        init(_ bytes: ArraySlice<UInt8>) {
            let slash = UInt8(ascii: "/")
            let ends: (UInt8) -> Bool = { $0 == slash || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            var start = bytes.startIndex
            // A colon after the first slash, question mark or hash belongs to a relative reference.
            if let colon = bytes.firstIndex(where: { $0 == UInt8(ascii: ":") || ends($0) }),
                bytes[colon] == UInt8(ascii: ":")
            {
                start = colon + 1
            }
            hostEnd = start
            userInfoEnd = start
            if bytes[start...].starts(with: [slash, slash]) {
                hostEnd = bytes[(start + 2)...].firstIndex(where: ends) ?? bytes.endIndex
                userInfoEnd = bytes[start..<hostEnd].lastIndex(of: UInt8(ascii: "@")) ?? start
            }
            queryEnd = bytes[hostEnd...].firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
            pathEnd = bytes[hostEnd..<queryEnd].firstIndex(of: UInt8(ascii: "?")) ?? queryEnd
        }

        func set(at index: Int) -> EncodeSet {
            if index < userInfoEnd { return .userInfo }
            if index < hostEnd { return .none }
            if index < pathEnd { return .path }
            return index < queryEnd ? .query : .fragment
        }
    }
}
