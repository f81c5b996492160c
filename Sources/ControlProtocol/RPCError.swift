import TaskModel

/// An error as JSON-RPC 2.0 carries it (section 5.1), with a stable word for programs beside it.
public struct RPCError: Error, Codable, Sendable, Equatable, CustomStringConvertible {
    public var code: Int
    /// One line for a person.
    public var message: String
    public var data: Detail?

    public struct Detail: Codable, Sendable, Equatable {
        /// One of the words that also stand in a task's `error`, `unknown-task` or `wrong-state`.
        public var code: ErrorCode
        /// The parameter at fault: `url`, `tasks[3].output`.
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

    /// The numbers. −32768 to −32000 are the standard's, those from −32001 on our own.
    public enum Number {
        public static let parse = -32700
        public static let invalidRequest = -32600
        public static let methodNotFound = -32601
        public static let invalidParameters = -32602
        public static let `internal` = -32603
        /// No task has this number, or none that the caller may see.
        public static let unknownTask = -32001
        /// The request is well formed and was turned down.
        public static let refused = -32002
        public static let notPermitted = -32003
        /// The store cannot take writes, or the daemon is about to end.
        public static let unavailable = -32004
    }

    public static func parse(_ message: String) -> RPCError {
        RPCError(code: Number.parse, message: message, data: Detail(code: .invalid))
    }

    public static func invalidRequest(_ message: String) -> RPCError {
        RPCError(code: Number.invalidRequest, message: message, data: Detail(code: .invalid))
    }

    /// What is wrong with a line before anything in it is looked at.
    public init(_ fault: JSONScan.Fault) {
        switch fault {
        case .notJSON, .notText: self = .parse("the line \(fault)")
        case .tooDeep, .tooManyValues, .duplicateKey: self = .invalidRequest("the line \(fault)")
        }
    }

    /// - Parameter field: the parameter that names the task.
    public static func unknownTask(_ id: TaskID, field: String = "id") -> RPCError {
        RPCError(
            code: Number.unknownTask, message: "no task has the id \(id)",
            data: Detail(code: .unknownTask, field: field))
    }

    public static func refused(_ code: ErrorCode, _ message: String) -> RPCError {
        RPCError(code: Number.refused, message: message, data: Detail(code: code))
    }

    /// - Parameter prefix: where the field stands, such as `tasks[3].`
    public init(_ error: FieldError, prefix: String = "") {
        let field = prefix + error.field
        self.init(
            code: Number.invalidParameters, message: "\(field): \(error.message)",
            data: Detail(code: error.code, field: field))
    }
}
