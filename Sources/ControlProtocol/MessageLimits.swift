/// What one line on the socket may be, and the scan that holds it to that before anything is decoded.
public enum MessageLimits {
    /// Bytes a line, without its LF.
    public static let lineLength = 1 << 20
    /// Arrays and objects within each other.
    public static let nesting = 64
    /// Requests in one batch.
    public static let batch = 1000

    /// - Returns: whether arrays and objects nest deeper than allowed; brackets inside strings do not count.
    public static func nestsTooDeep(_ line: some Sequence<UInt8>) -> Bool {
        // One by one only what is not in one piece.
        line.withContiguousStorageIfAvailable { nests(tooDeep: $0) } ?? nests(tooDeep: line)
    }

    private static func nests(tooDeep line: some Sequence<UInt8>) -> Bool {
        var depth = 0
        var inString = false
        var escaped = false
        for byte in line {
            if inString {
                if escaped {
                    escaped = false
                } else if byte == UInt8(ascii: "\\") {
                    escaped = true
                } else if byte == UInt8(ascii: "\"") {
                    inString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): inString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                if depth > nesting { return true }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
        }
        return false
    }
}
