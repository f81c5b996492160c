import FoundationEssentials
import TaskModel

/// The input of a hook's command: the task as JSON on standard input, and the most used facts as variables.
enum HookInput {
    /// The task's JSON with the values at the time of the event, and the event's own fields under `event`.
    private struct Shown: Encodable {
        let event: TaskEvent
        let task: TaskStatus?

        private struct Event: Encodable {
            let sequence: Int64
            let at: Milliseconds
            let type: TaskEvent.Kind
            let totals: BatchResult?

            private enum CodingKeys: String, CodingKey { case sequence, at, type, totals }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(sequence, forKey: .sequence)
                try container.encode(at, forKey: .at)
                try container.encode(type, forKey: .type)
                try container.encode(totals, forKey: .totals)
            }
        }

        private enum CodingKeys: String, CodingKey {
            case id, kind, state, reason, error, url, path, batch, key, owner, bytesDone, bytesTotal, event
        }

        func encode(to encoder: any Encoder) throws {
            try task?.encode(to: encoder)
            // Later values of a key replace earlier ones.
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(event.id, forKey: .id)
            try container.encode(event.kind, forKey: .kind)
            try container.encode(event.state, forKey: .state)
            try container.encode(event.reason, forKey: .reason)
            try container.encode(event.error, forKey: .error)
            try container.encode(event.url, forKey: .url)
            try container.encode(event.path, forKey: .path)
            try container.encode(event.batch, forKey: .batch)
            try container.encode(event.key, forKey: .key)
            try container.encode(event.owner, forKey: .owner)
            try container.encode(event.bytesDone, forKey: .bytesDone)
            try container.encode(event.bytesTotal, forKey: .bytesTotal)
            try container.encode(
                Event(sequence: event.sequence, at: event.at, type: event.type, totals: event.totals), forKey: .event)
        }
    }

    /// Returns the JSON of an event's task.
    ///
    /// - Parameter task: the task as it is now; `nil` if it was removed, or for an event of a batch.
    static func json(_ event: TaskEvent, _ task: TaskStatus?, _ output: Output) -> String {
        output.encoded(Shown(event: event, task: task))
    }

    /// Returns the environment variables for an event. What is not known is empty.
    static func variables(_ event: TaskEvent) -> [String: String] {
        func number(_ value: (some BinaryInteger)?) -> String { value.map { String($0) } ?? "" }
        let values = [
            "DLD_SEQUENCE": String(event.sequence), "DLD_EVENT": event.type.rawValue,
            "DLD_ID": number(event.id?.rawValue), "DLD_KIND": event.kind?.rawValue ?? "",
            "DLD_STATE": event.state?.rawValue ?? "", "DLD_REASON": event.reason?.rawValue ?? "",
            "DLD_URL": event.url ?? "", "DLD_PATH": event.path ?? "", "DLD_BATCH": event.batch ?? "",
            "DLD_KEY": event.key ?? "", "DLD_OWNER": number(event.owner),
            "DLD_BYTES_DONE": number(event.bytesDone), "DLD_BYTES_TOTAL": number(event.bytesTotal),
            "DLD_ERROR": event.error?.code.rawValue ?? "", "DLD_MESSAGE": event.error?.message ?? "",
        ]
        // A variable cannot hold the byte 0.
        return values.mapValues { $0.filter { $0 != "\0" } }
    }
}
