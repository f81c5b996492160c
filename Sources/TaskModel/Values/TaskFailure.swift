/// A stable, machine-readable error code for scripts and metrics.
public struct ErrorCode: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Returns the code `http-STATUS`, such as `http-404`: the server responded with this status.
    public static func http(_ status: Int) -> ErrorCode { ErrorCode(rawValue: "http-\(status)") }

    public static let dns = ErrorCode(rawValue: "dns")
    public static let connect = ErrorCode(rawValue: "connect")
    public static let tls = ErrorCode(rawValue: "tls")
    public static let timeout = ErrorCode(rawValue: "timeout")
    public static let stalled = ErrorCode(rawValue: "stalled")
    public static let truncated = ErrorCode(rawValue: "truncated")
    public static let tooManyRedirects = ErrorCode(rawValue: "too-many-redirects")
    public static let protocolNotAllowed = ErrorCode(rawValue: "protocol-not-allowed")
    public static let addressNotAllowed = ErrorCode(rawValue: "address-not-allowed")
    public static let checksumMismatch = ErrorCode(rawValue: "checksum-mismatch")
    /// The list of checksums does not name the file.
    public static let checksumMissing = ErrorCode(rawValue: "checksum-missing")
    /// The task that this one depends on ended without having completed.
    public static let dependency = ErrorCode(rawValue: "dependency")
    public static let remoteChanged = ErrorCode(rawValue: "remote-changed")
    public static let notResumable = ErrorCode(rawValue: "not-resumable")
    public static let nameConflict = ErrorCode(rawValue: "name-conflict")
    public static let pathNotAllowed = ErrorCode(rawValue: "path-not-allowed")
    public static let diskFull = ErrorCode(rawValue: "disk-full")
    public static let permissionDenied = ErrorCode(rawValue: "permission-denied")
    public static let io = ErrorCode(rawValue: "io")
    /// The download's part file is in use by another process.
    public static let partInUse = ErrorCode(rawValue: "part-in-use")
    public static let sourceChanged = ErrorCode(rawValue: "source-changed")
    /// The open file that a client passed for an upload was closed before the upload ended.
    public static let sourceLost = ErrorCode(rawValue: "source-lost")
    public static let tooLarge = ErrorCode(rawValue: "too-large")
    public static let quota = ErrorCode(rawValue: "quota")
    public static let invalid = ErrorCode(rawValue: "invalid")
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
    public var code: ErrorCode
    /// A single line for a human reader, without secrets.
    public var message: String
    /// The HTTP status of the response; `nil` where there was no response.
    public var httpStatus: Int?

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
    public var code: ErrorCode
    /// The problem and the valid values, without the field's name.
    public var message: String

    public init(field: String, code: ErrorCode = .invalid, message: String) {
        self.field = field
        self.code = code
        self.message = message
    }

    public var description: String { "\(field): \(message)" }
}
