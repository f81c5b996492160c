/// Percent-encoding of UTF-8 (RFC 3986, section 2.1).
struct PercentEscape {
    /// An escape of everything but the unreserved characters: letters, digits and `-._~` (RFC 3986, section 2.3).
    static let unreserved = PercentEscape(spared: [])
    /// An escape that also leaves `/` and `?` unchanged, which are allowed in a query (RFC 3986, section 3.4).
    static let query = PercentEscape(spared: [UInt8(ascii: "/"), UInt8(ascii: "?")])

    private let spared: [UInt8]

    func escape(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                escaped.append(byte)
            default:
                if spared.contains(byte) {
                    escaped.append(byte)
                } else {
                    escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
                }
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}
