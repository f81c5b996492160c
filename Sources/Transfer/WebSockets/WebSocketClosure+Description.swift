extension WebSocketCloseCode: CustomStringConvertible {
    /// The number and its meaning, as in `1000 (normal closure)`; the number alone if the meaning is unknown.
    public var description: String { meaning.map { "\(rawValue) (\($0))" } ?? "\(rawValue)" }

    /// The name of the code in the registry (RFC 6455, sections 7.4.1 and 11.7).
    private var meaning: String? {
        switch rawValue {
        case 1000: "normal closure"
        case 1001: "going away"
        case 1002: "protocol error"
        case 1003: "unsupported data"
        case 1005: "no status"
        case 1007: "invalid payload"
        case 1008: "policy violation"
        case 1009: "message too big"
        case 1010: "missing extension"
        case 1011: "internal error"
        case 1012: "service restart"
        case 1013: "try again later"
        case 1014: "bad gateway"
        default: nil
        }
    }
}

extension WebSocketClosure: CustomStringConvertible {
    /// The code, and the reason if there is one, as in `1001 (going away): maintenance`.
    public var description: String {
        reason.isEmpty ? code.description : ReadableText.line("\(code): \(reason)")
    }
}
