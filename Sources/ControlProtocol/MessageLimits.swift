/// What one line on the socket may be; ``JSONScan`` holds it to that before anything is decoded.
public enum MessageLimits {
    /// Bytes a line, without its LF.
    public static let lineLength = 1 << 20
    /// Arrays and objects within each other.
    public static let nesting = 64
    /// Values in a line, keys of objects among them: decoded, each takes many times its bytes.
    public static let values = 262_144
    /// Requests in one batch.
    public static let batch = 1000
}
