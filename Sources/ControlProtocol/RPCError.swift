public import TaskModel

/// A JSON-RPC 2.0 error object (section 5.1), with a stable error code for programs in `data`.
public struct RPCError: Error, Codable, Sendable, Equatable, CustomStringConvertible {
    public var code: Int
    /// A message of one line for the user.
    public var message: String
    public var data: Detail?

    public struct Detail: Codable, Sendable, Equatable {
        /// The stable error code: one of those in a task's `error`, `unknown-task` or `wrong-state`.
        public var code: ErrorCode
        /// The parameter at fault, such as `url` or `tasks[3].output`.
        public var field: String?

        public init(code: ErrorCode, field: String? = nil) {
            self.code = code
            self.field = field
        }
    }

    public init(code: Int, message: String, data: Detail? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    public var description: String { message }

    /// The error numbers. −32768 to −32000 are reserved by the standard; those from −32001 on are specific to dld.
    public enum Number {
        public static let parse = -32700
        public static let invalidRequest = -32600
        public static let methodNotFound = -32601
        public static let invalidParameters = -32602
        public static let `internal` = -32603
        /// The task id is unknown, or the caller may not see the task.
        public static let unknownTask = -32001
        /// The request is well formed but was rejected.
        public static let refused = -32002
        public static let notPermitted = -32003
        /// The store cannot be written to, or the daemon is about to shut down.
        public static let unavailable = -32004
    }

    public static func parse(_ message: String) -> RPCError {
        RPCError(code: Number.parse, message: message, data: Detail(code: .invalid))
    }

    public static func invalidRequest(_ message: String) -> RPCError {
        RPCError(code: Number.invalidRequest, message: message, data: Detail(code: .invalid))
    }

    /// Creates the error for a line that fails validation before it is decoded.
    public init(_ fault: JSONScan.Fault) {
        switch fault {
        case .notJSON, .notText: self = .parse("the line \(fault)")
        case .tooDeep, .tooManyValues, .duplicateKey: self = .invalidRequest("the line \(fault)")
        }
    }

    /// Returns the error for an unknown task.
    ///
    /// - Parameter field: the parameter that names the task.
    public static func unknownTask(_ id: TaskID, field: String = "id") -> RPCError {
        RPCError(
            code: Number.unknownTask, message: "no task has the id \(id)",
            data: Detail(code: .unknownTask, field: field))
    }

    public static func refused(_ code: ErrorCode, _ message: String) -> RPCError {
        RPCError(code: Number.refused, message: message, data: Detail(code: code))
    }

    /// Creates the error for an invalid parameter.
    ///
    /// - Parameter prefix: the path in front of the field, such as `tasks[3].`
    public init(_ error: FieldError, prefix: String = "") {
        let field = prefix + error.field
        self.init(
            code: Number.invalidParameters, message: "\(field): \(error.message)",
            data: Detail(code: error.code, field: field))
    }
}
