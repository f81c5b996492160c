/// Limits for one line on the socket. ``JSONScan`` enforces `nesting` and `values` before anything is decoded.
public enum MessageLimits {
    /// The maximum number of bytes in a line, without its LF.
    public static let lineLength = 1 << 20
    /// The maximum nesting depth of arrays and objects.
    public static let nesting = 64
    /// The maximum number of values in a line, including keys of objects. A decoded value takes many times its encoded
    /// size.
    public static let values = 262_144
    /// The maximum number of requests in one batch.
    public static let batch = 1000
}
