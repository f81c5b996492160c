import TaskModel

/// A request as received on the socket. Decoding never fails, so that one bad request in a batch does not affect the
/// others.
public struct IncomingRequest: Decodable, Sendable {
    /// The request's id; `nil` for a notification, which gets no response.
    public let id: RequestID?
    public let command: Result<Command, RPCError>

    private enum Field: String, CodingKey {
        case jsonrpc, id, method, params
    }

    public init(from decoder: any Decoder) throws {
        guard let container = try? decoder.container(keyedBy: Field.self) else {
            id = .null
            command = .failure(.invalidRequest("a request is a JSON object"))
            return
        }
        guard let version = try? container.decode(String.self, forKey: .jsonrpc), version == "2.0" else {
            id = (try? container.decode(RequestID.self, forKey: .id)) ?? .null
            command = .failure(.invalidRequest("jsonrpc must be \"2.0\""))
            return
        }
        if container.contains(.id) {
            guard let given = try? container.decode(RequestID.self, forKey: .id) else {
                id = .null
                command = .failure(.invalidRequest("id must be a string, a whole number or null"))
                return
            }
            id = given
        } else {
            id = nil
        }
        guard let name = try? container.decode(String.self, forKey: .method) else {
            command = .failure(.invalidRequest("method must be a string"))
            return
        }
        command = Self.command(name, container)
    }

    private static func command(_ name: String, _ container: KeyedDecodingContainer<Field>) -> Result<Command, RPCError>
    {
        guard let method = MethodName(rawValue: name) else {
            let nearest = NearestWord.to(name, among: MethodName.allCases.map(\.rawValue))
            return .failure(
                RPCError(
                    code: RPCError.Number.methodNotFound,
                    message: "there is no method \(printable(name))" + (nearest.map { "; did you mean \($0)?" } ?? ""),
                    data: .init(code: .invalid, field: "method")))
        }
        do {
            return .success(try decode(method, container))
        } catch let error as FieldError {
            return .failure(RPCError(error))
        } catch let error as DecodingError {
            return .failure(RPCError(fieldError(error)))
        } catch {
            return .failure(RPCError(FieldError(field: "params", message: "contains a number out of range")))
        }
    }

    private static func decode(_ method: MethodName, _ container: KeyedDecodingContainer<Field>) throws -> Command {
        func parameters<Value: MethodParameters>(or none: Value? = nil) throws -> Value {
            if let none, !container.contains(.params) { return none }
            guard container.contains(.params) else { throw FieldError(field: "params", message: "is missing") }
            guard let object = try? container.nestedContainer(keyedBy: AnyKey.self, forKey: .params) else {
                throw FieldError(field: "params", message: "must be an object")
            }
            for key in object.allKeys where !Value.keys.contains(key.stringValue) {
                let nearest = NearestWord.to(key.stringValue, among: Value.keys)
                throw FieldError(
                    field: printable(key.stringValue),
                    message: "is not a parameter of \(method.rawValue)"
                        + (nearest.map { "; did you mean \($0)?" } ?? ""))
            }
            return try container.decode(Value.self, forKey: .params)
        }
        switch method {
        case .taskAdd: return .taskAdd(try parameters())
        case .taskGet: return .taskGet(try parameters())
        case .taskList: return .taskList(try parameters(or: TaskListParameters()))
        case .taskCount: return .taskCount(try parameters(or: TaskCountParameters()))
        case .taskPause: return .taskPause(try parameters())
        case .taskResume: return .taskResume(try parameters())
        case .taskCancel: return .taskCancel(try parameters())
        case .taskRemove: return .taskRemove(try parameters())
        case .taskRetry: return .taskRetry(try parameters())
        case .taskUpdate: return .taskUpdate(try parameters())
        case .taskMove: return .taskMove(try parameters())
        case .queueBegin: return .queueBegin(try parameters(or: QueueBeginParameters()))
        case .queuePut: return .queuePut(try parameters())
        case .queueCommit: return .queueCommit(try parameters())
        case .queueAbort: return .queueAbort(try parameters())
        case .queueList: return .queueList(try parameters(or: QueueListParameters()))
        case .sourceReceive: return .sourceReceive(try parameters())
        case .sourceAttach: return .sourceAttach(try parameters())
        case .daemonStatus: return .daemonStatus(try parameters(or: DaemonStatusParameters()))
        case .daemonLimits: return .daemonLimits(try parameters(or: DaemonLimitsParameters()))
        case .daemonReload:
            _ = try parameters(or: NoParameters())
            return .daemonReload
        case .daemonBackup:
            _ = try parameters(or: NoParameters())
            return .daemonBackup
        case .backupRead: return .backupRead(try parameters())
        case .daemonShutdown:
            _ = try parameters(or: NoParameters())
            return .daemonShutdown
        case .eventsList: return .eventsList(try parameters(or: EventsListParameters()))
        case .eventsSubscribe: return .eventsSubscribe(try parameters(or: EventsSubscribeParameters()))
        case .rpcDiscover:
            _ = try parameters(or: NoParameters())
            return .rpcDiscover
        }
    }

    private static func fieldError(_ error: DecodingError) -> FieldError {
        func path(_ keys: [any CodingKey]) -> String {
            var text = ""
            for key in keys where key.stringValue != Field.params.rawValue {
                if let index = key.intValue {
                    text += "[\(index)]"
                } else {
                    text += (text.isEmpty ? "" : ".") + printable(key.stringValue)
                }
            }
            return text.isEmpty ? "params" : text
        }
        switch error {
        case .keyNotFound(let key, let context):
            return FieldError(field: path(context.codingPath + [key]), message: "is missing")
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return FieldError(field: path(context.codingPath), message: "is of the wrong type")
        case .dataCorrupted(let context):
            return FieldError(field: path(context.codingPath), message: "has a value that is not allowed")
        @unknown default:
            return FieldError(field: "params", message: "cannot be read")
        }
    }
}

/// Returns untrusted text in a form suitable for a message: at most 64 characters, with hidden characters replaced by
/// `?`.
func printable(_ text: String) -> String {
    String(
        String.UnicodeScalarView(
            text.unicodeScalars.prefix(64).map { $0.isHidden ? "?" : $0 }))
}
