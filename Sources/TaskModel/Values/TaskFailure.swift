/// A stable, machine-readable error code for scripts and metrics.
public struct ErrorCode: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
    /// The word, such as `http-404`.
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Returns the code `http-STATUS`, such as `http-404`: the server responded with this status.
    public static func http(_ status: Int) -> ErrorCode { ErrorCode(rawValue: "http-\(status)") }

    /// The name of the host has no address, or the name server does not answer.
    public static let dns = ErrorCode(rawValue: "dns")
    /// The host could not be connected to.
    public static let connect = ErrorCode(rawValue: "connect")
    /// TLS failed, for example because of an untrusted certificate.
    public static let tls = ErrorCode(rawValue: "tls")
    /// The connection was not established in time.
    public static let timeout = ErrorCode(rawValue: "timeout")
    /// The transfer stood still for the time of `timeouts.stall`.
    public static let stalled = ErrorCode(rawValue: "stalled")
    /// The connection ended before the last byte.
    public static let truncated = ErrorCode(rawValue: "truncated")
    /// The server redirected too often.
    public static let tooManyRedirects = ErrorCode(rawValue: "too-many-redirects")
    /// A redirect leads to a protocol that is not allowed.
    public static let protocolNotAllowed = ErrorCode(rawValue: "protocol-not-allowed")
    /// The configuration does not allow the address of the host.
    public static let addressNotAllowed = ErrorCode(rawValue: "address-not-allowed")
    /// The file has another digest than expected.
    public static let checksumMismatch = ErrorCode(rawValue: "checksum-mismatch")
    /// The list of checksums does not name the file.
    public static let checksumMissing = ErrorCode(rawValue: "checksum-missing")
    /// The task that this one depends on ended without having completed.
    public static let dependency = ErrorCode(rawValue: "dependency")
    /// The file on the server changed again and again during the download.
    public static let remoteChanged = ErrorCode(rawValue: "remote-changed")
    /// The server cannot continue a transfer where it stopped.
    public static let notResumable = ErrorCode(rawValue: "not-resumable")
    /// The name of the file is taken.
    public static let nameConflict = ErrorCode(rawValue: "name-conflict")
    /// The path is outside of the permitted directories.
    public static let pathNotAllowed = ErrorCode(rawValue: "path-not-allowed")
    /// The file system is full.
    public static let diskFull = ErrorCode(rawValue: "disk-full")
    /// The owner may not read or write the file.
    public static let permissionDenied = ErrorCode(rawValue: "permission-denied")
    /// A file could not be read or written.
    public static let io = ErrorCode(rawValue: "io")
    /// The download's part file is in use by another process.
    public static let partInUse = ErrorCode(rawValue: "part-in-use")
    /// The source of an upload changed during the upload.
    public static let sourceChanged = ErrorCode(rawValue: "source-changed")
    /// The open file that a client passed for an upload was closed before the upload ended.
    public static let sourceLost = ErrorCode(rawValue: "source-lost")
    /// The file is larger than permitted.
    public static let tooLarge = ErrorCode(rawValue: "too-large")
    /// A quota of the owner is used up.
    public static let quota = ErrorCode(rawValue: "quota")
    /// A value or a response is invalid.
    public static let invalid = ErrorCode(rawValue: "invalid")
    /// An error in the daemon.
    public static let `internal` = ErrorCode(rawValue: "internal")
    /// The daemon cannot start, because its configuration, its database or its state directory is invalid.
    public static let cannotStart = ErrorCode(rawValue: "cannot-start")

    // Errors of a request to the daemon. A task never has one of these.
    /// The daemon's database file was removed or replaced while in use, so anything written now would be lost.
    public static let databaseLost = ErrorCode(rawValue: "database-lost")
    /// The command line is invalid.
    public static let usage = ErrorCode(rawValue: "usage")
    /// The task id is unknown, or the caller may not see the task that has it.
    public static let unknownTask = ErrorCode(rawValue: "unknown-task")
    /// The task's state does not allow the requested operation.
    public static let wrongState = ErrorCode(rawValue: "wrong-state")

    public var description: String { rawValue }

    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(String.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// The reason why a task failed, or why its last attempt failed.
public struct TaskFailure: Codable, Sendable, Equatable {
    /// The code.
    public var code: ErrorCode
    /// A single line for a human reader, without secrets.
    public var message: String
    /// The HTTP status of the response; `nil` where there was no response.
    public var httpStatus: Int?

    /// Creates a failure.
    public init(code: ErrorCode, message: String, httpStatus: Int? = nil) {
        self.code = code
        self.message = message
        self.httpStatus = httpStatus
    }

    private enum CodingKeys: String, CodingKey {
        case code, message, httpStatus
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(code, forKey: .code)
        try container.encode(message, forKey: .message)
        try container.encode(httpStatus, forKey: .httpStatus)
    }
}

/// An invalid value given by a user or a client program, with the name of its field.
public struct FieldError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The field's name as the user wrote it: `url`, `output`, `headers[2]`.
    public var field: String
    /// The code.
    public var code: ErrorCode
    /// The problem and the valid values, without the field's name.
    public var message: String

    /// Creates an error for a field.
    public init(field: String, code: ErrorCode = .invalid, message: String) {
        self.field = field
        self.code = code
        self.message = message
    }

    public var description: String { "\(field): \(message)" }
}
