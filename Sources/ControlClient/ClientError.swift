import ControlProtocol
import Glibc

/// Why a call to the daemon brought no result.
public enum ClientError: Error, Sendable, Equatable {
    /// Nobody listens on any of `paths`; `errno` is what the last of them said.
    case noDaemon(paths: [String], errno: Int32)
    /// The socket is there, and this user may not open it (EACCES or EPERM).
    case notPermitted(path: String)
    /// A socket's path holds at most ``SocketPath/maximumLength`` bytes.
    case unusablePath(String)
    /// The daemon understood the call and answered with an error.
    case rpc(RPCError)
    /// The connection ended before the answer came; whether the call was carried out is not known.
    case connectionLost(path: String)
    /// The deadline passed before the answer came; whether the call was carried out is not known.
    case timedOut
    /// The call does not fit into one line of ``ControlProtocol/MessageLimits/lineLength`` bytes.
    case callTooLong(bytes: Int)
    /// What came back is no answer of this protocol.
    case malformedAnswer(String)
}

extension ClientError: CustomStringConvertible {
    /// One line for a person.
    public var description: String {
        switch self {
        case .noDaemon(let paths, let code):
            "no daemon answers on \(paths.joined(separator: " or ")) (\(Self.text(of: code)))"
        case .notPermitted(let path): "\(path) may not be opened by this user"
        case .unusablePath(let path):
            "a socket's path has 1 to \(SocketPath.maximumLength) bytes; this one has \(path.utf8.count)"
        case .rpc(let error): error.message
        case .connectionLost(let path): "the daemon on \(path) closed the connection before it answered"
        case .timedOut: "the daemon did not answer in time"
        case .callTooLong(let bytes): "the call has \(bytes) bytes; at most \(MessageLimits.lineLength) fit into one"
        case .malformedAnswer(let message): "the daemon's answer makes no sense: \(message)"
        }
    }

    static func text(of code: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        // Glibc offers Swift the XSI form, which fills the buffer.
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
