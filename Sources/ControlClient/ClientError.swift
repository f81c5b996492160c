public import ControlProtocol
import Glibc

/// A reason why a call to the daemon returned no result.
public enum ClientError: Error, Sendable, Equatable {
    /// The socket could not be connected to on any of `paths`; `errno` is that of the last attempt.
    case noDaemon(paths: [String], errno: Int32)
    /// The socket exists, but this user has no permission to connect to it (EACCES or EPERM).
    case notPermitted(path: String)
    /// The path is empty, contains a zero byte, or is longer than ``SocketPath/maximumLength`` bytes.
    case unusablePath(String)
    /// The daemon answered the call with a JSON-RPC error.
    case rpc(RPCError)
    /// The connection was closed before the response arrived; the call may or may not have been carried out.
    case connectionLost(path: String)
    /// The deadline passed before the response arrived; the call may or may not have been carried out.
    case timedOut
    /// The encoded call is longer than ``MessageLimits/lineLength`` bytes.
    case callTooLong(bytes: Int)
    /// The received line is not a valid message of this protocol.
    case malformedAnswer(String)
    /// The name of an app is empty, too long, or has other signs than letters, digits, `-`, `_` and `.`.
    case unusableIdentifier(String)
    /// The events of the app with this name are being delivered by another process.
    case busyIdentifier(String)
    /// The file with an app's place in the journal cannot be read or written, or has other contents (EINVAL).
    case unusableState(path: String, errno: Int32)
}

extension ClientError: CustomStringConvertible {
    /// A message of one line for the user.
    public var description: String {
        switch self {
        case .noDaemon(let paths, let code):
            "no daemon answers on \(paths.joined(separator: " or ")) (\(Self.text(of: code)))"
        case .notPermitted(let path): "this user may not open \(path)"
        case .unusablePath(let path):
            "a socket's path must have 1 to \(SocketPath.maximumLength) bytes; this one has \(path.utf8.count)"
        case .rpc(let error): error.message
        case .connectionLost(let path): "the daemon on \(path) closed the connection before it answered"
        case .timedOut: "the daemon did not answer in time"
        case .callTooLong(let bytes): "the request has \(bytes) bytes; the maximum is \(MessageLimits.lineLength)"
        case .malformedAnswer(let message): "the daemon sent an invalid response: \(message)"
        case .unusableIdentifier(let name):
            "\"\(name)\" is not a name of an app: 1 to 128 letters, digits, \"-\", \"_\" and \".\", such as org.example.player"
        case .busyIdentifier(let name): "another process handles the events of \(name)"
        case .unusableState(let path, let code): "cannot use \(path): \(Self.text(of: code))"
        }
    }

    static func text(of code: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        // In Swift, Glibc exposes the XSI variant of strerror_r(3), which fills the buffer.
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
