public import FoundationEssentials

/// A message of a WebSocket (RFC 6455, section 5.6).
public enum WebSocketMessage: Sendable, Hashable {
    /// A text, which is sent as UTF-8.
    case text(String)
    /// Binary data.
    case data(Data)

    /// The size of the message as it is sent, in bytes.
    public var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let data): data.count
        }
    }
}

/// The status code in a Close frame (RFC 6455, section 7.4).
public struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The purpose of the connection is fulfilled.
    public static let normal = Self(rawValue: 1000)
    /// The server stops, or the client leaves.
    public static let goingAway = Self(rawValue: 1001)
    /// The peer violated the protocol.
    public static let protocolError = Self(rawValue: 1002)
    /// The peer sent a kind of message that cannot be accepted.
    public static let unsupportedData = Self(rawValue: 1003)
    /// The Close frame had no code. This code is never sent.
    public static let noStatus = Self(rawValue: 1005)
    /// A message does not have the content that its kind requires, such as a text that is not UTF-8.
    public static let invalidPayload = Self(rawValue: 1007)
    /// A message violates the peer's policy.
    public static let policyViolation = Self(rawValue: 1008)
    /// A message is too large.
    public static let messageTooBig = Self(rawValue: 1009)
    /// The client expected an extension that the server did not accept.
    public static let missingExtension = Self(rawValue: 1010)
    /// The server failed.
    public static let internalError = Self(rawValue: 1011)

    /// Whether the code may be in a Close frame: those of the RFC and its registry (section 11.7), and those for
    /// libraries and applications (3000 to 4999).
    var isSendable: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// The code and the reason with which the server closed a WebSocket.
public struct WebSocketClosure: Sendable, Hashable {
    /// The code of the server's Close frame; ``WebSocketCloseCode/noStatus`` if it had none.
    public var code: WebSocketCloseCode
    /// The reason in the server's Close frame, for people only; empty if there is none.
    public var reason: String

    /// Creates a closure, for example for a test.
    public init(code: WebSocketCloseCode, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// The maximum size of a reason in bytes of UTF-8: a control frame has at most 125 (RFC 6455, section 5.5).
    static let longestReason = 123

    /// Parses the payload of a Close frame.
    init(payload: [UInt8]) throws(WebSocketViolation) {
        guard payload.count != 1 else { throw WebSocketViolation("a Close frame with half a code") }
        guard payload.count >= 2 else {
            self.init(code: .noStatus)
            return
        }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw WebSocketViolation("the close code \(code.rawValue)") }
        guard let reason = String(validating: payload.dropFirst(2), as: UTF8.self) else {
            throw WebSocketViolation("a close reason that is not UTF-8", .invalidPayload)
        }
        self.init(code: code, reason: reason)
    }

    /// The payload of a Close frame.
    var payload: [UInt8] {
        guard code != .noStatus else { return [] }
        return [UInt8(code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)] + reason.utf8
    }
}

/// A violation of the protocol by the peer, after which the connection must be failed (RFC 6455, section 7.1.7).
struct WebSocketViolation: Error, Equatable {
    let words: String
    /// The code to close the connection with.
    let code: WebSocketCloseCode

    init(_ words: String, _ code: WebSocketCloseCode = .protocolError) {
        self.words = words
        self.code = code
    }

    /// The error for the calls that wait.
    var error: TransferError {
        code == .messageTooBig
            ? TransferError(.tooLarge, words)
            : TransferError(.truncated, "the server violated the WebSocket protocol: \(words)")
    }
}
