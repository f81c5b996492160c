/// The description of a method in `rpc.discover`, beside its parameters.
struct MethodDescription {
    /// The effect of the method, as a phrase without a full stop.
    let summary: String
    /// The name of the result, and its schema.
    let result: (name: String, schema: JSONSchema)
    let errors: [SharedError]
    let example: (parameters: [String: RPCValue], result: RPCValue)

    /// - Parameter errors: the errors besides those of every method.
    init(
        _ summary: String, returns name: String, _ schema: JSONSchema, errors: [SharedError] = [],
        example parameters: [String: RPCValue] = [:], _ result: RPCValue
    ) {
        self.summary = summary
        self.result = (name, schema)
        self.errors = [.invalidRequest, .invalidParameters, .internal] + errors
        example = (parameters, result)
    }
}

/// The errors of the protocol, by their names in the document.
enum SharedError: String, CaseIterable {
    case parse = "Parse"
    case invalidRequest = "InvalidRequest"
    case methodNotFound = "MethodNotFound"
    case invalidParameters = "InvalidParameters"
    case `internal` = "Internal"
    case unknownTask = "UnknownTask"
    case refused = "Refused"
    case notPermitted = "NotPermitted"
    case unavailable = "Unavailable"

    var number: Int {
        switch self {
        case .parse: RPCError.Number.parse
        case .invalidRequest: RPCError.Number.invalidRequest
        case .methodNotFound: RPCError.Number.methodNotFound
        case .invalidParameters: RPCError.Number.invalidParameters
        case .internal: RPCError.Number.internal
        case .unknownTask: RPCError.Number.unknownTask
        case .refused: RPCError.Number.refused
        case .notPermitted: RPCError.Number.notPermitted
        case .unavailable: RPCError.Number.unavailable
        }
    }

    var summary: String {
        switch self {
        case .parse: "the line is not JSON"
        case .invalidRequest: "the line is not a request, or it passes a limit"
        case .methodNotFound: "there is no such method"
        case .invalidParameters: "a parameter is wrong; data.field names it"
        case .internal: "the daemon has a defect"
        case .unknownTask: "no task has this id, or none that the caller may see"
        case .refused: "the request is well formed and refused; data.code says why"
        case .notPermitted: "the caller is not an administrator"
        case .unavailable: "the database cannot be written, or the daemon is about to end"
        }
    }
}
