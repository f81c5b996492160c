/// A stable word for what went wrong, fit for scripts and metrics.
public struct ErrorCode: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// `http-404` and its like: the server answered, and this was its status.
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
    /// The task that this one was to follow ended without having completed.
    public static let dependency = ErrorCode(rawValue: "dependency")
    public static let remoteChanged = ErrorCode(rawValue: "remote-changed")
    public static let notResumable = ErrorCode(rawValue: "not-resumable")
    public static let nameConflict = ErrorCode(rawValue: "name-conflict")
    public static let pathNotAllowed = ErrorCode(rawValue: "path-not-allowed")
    public static let diskFull = ErrorCode(rawValue: "disk-full")
    public static let permissionDenied = ErrorCode(rawValue: "permission-denied")
    public static let io = ErrorCode(rawValue: "io")
    /// Another process is at work on the download's part file.
    public static let partInUse = ErrorCode(rawValue: "part-in-use")
    public static let sourceChanged = ErrorCode(rawValue: "source-changed")
    /// The open file that was passed for an upload was closed before it was sent.
    public static let sourceLost = ErrorCode(rawValue: "source-lost")
    public static let tooLarge = ErrorCode(rawValue: "too-large")
    public static let quota = ErrorCode(rawValue: "quota")
    public static let invalid = ErrorCode(rawValue: "invalid")
    public static let `internal` = ErrorCode(rawValue: "internal")
    /// The daemon cannot start: its configuration, its database or its state directory is wrong.
    public static let cannotStart = ErrorCode(rawValue: "cannot-start")

    // Answers to a request, never the error of a task.
    /// The daemon's database was taken away under it: nothing that it wrote down now would last.
    public static let databaseLost = ErrorCode(rawValue: "database-lost")
    /// The command line was used wrongly.
    public static let usage = ErrorCode(rawValue: "usage")
    /// No task has the id, or none that the caller may see.
    public static let unknownTask = ErrorCode(rawValue: "unknown-task")
    /// The task's state does not allow what was asked for.
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

/// Why a task failed, or why its last attempt did.
public struct TaskFailure: Codable, Sendable, Equatable {
    public var code: ErrorCode
    /// One line for a person, without secrets.
    public var message: String
    /// The status that the server answered with, where it answered.
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

/// A value that a person or a program gave us and that cannot be taken, with the field it stood in.
public struct FieldError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The field's name as the person wrote it: `url`, `output`, `headers[2]`.
    public var field: String
    public var code: ErrorCode
    /// What is wrong and what would be right, without the field's name.
    public var message: String

    public init(field: String, code: ErrorCode = .invalid, message: String) {
        self.field = field
        self.code = code
        self.message = message
    }

    public var description: String { "\(field): \(message)" }
}
