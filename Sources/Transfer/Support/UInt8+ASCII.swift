extension UInt8 {
    /// An ASCII letter or digit (RFC 5234, appendix B.1: `ALPHA` and `DIGIT`).
    var isASCIILetterOrDigit: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }
}
