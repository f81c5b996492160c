import ControlProtocol
import TaskModel

/// A line from the daemon, decoded in one pass: a response or an event notification.
enum IncomingMessage<Value: Decodable & Sendable>: Decodable {
    case answer(RequestID, Result<Value, RPCError>)
    case event(TaskEvent)
    /// A notification that this version does not know.
    case unknown

    private enum CodingKeys: String, CodingKey { case id, method, params, result, error }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let method = try container.decodeIfPresent(String.self, forKey: .method) {
            guard method == EventNotification.method,
                let event = try? container.decode(TaskEvent.self, forKey: .params)
            else {
                self = .unknown
                return
            }
            self = .event(event)
            return
        }
        let id = try container.decode(RequestID.self, forKey: .id)
        if let error = try container.decodeIfPresent(RPCError.self, forKey: .error) {
            self = .answer(id, .failure(error))
        } else {
            self = .answer(id, .success(try container.decode(Value.self, forKey: .result)))
        }
    }
}
