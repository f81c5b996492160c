import FoundationEssentials
import TaskModel
import Testing

@testable import ControlProtocol

/// The document of `rpc.discover` against the decoders of requests and the encoders of results.
@Suite("The description of the protocol for programs")
struct OpenRPCDocumentTests {
    private let document = OpenRPCDocument().value
    /// Values of each type.
    private static let values: [RPCValue] = [true, 7, "text", ["text": 1], [[]], .number(-0.5)]

    private var methods: [RPCValue] { get throws { try #require(document["methods"]?.array) } }

    private func method(_ name: MethodName) throws -> RPCValue {
        try #require(try methods.first { $0["name"]?.text == name.rawValue })
    }

    /// Decodes a request with the given parameters.
    private func command(_ method: MethodName, _ parameters: RPCValue?) throws -> Result<Command, RPCError> {
        var request: [String: RPCValue] = ["jsonrpc": "2.0", "id": 1, "method": .string(method.rawValue)]
        request["params"] = parameters
        let data = try JSONEncoder().encode(RPCValue.object(request))
        return try JSONDecoder().decode(IncomingRequest.self, from: data).command
    }

    private func example(_ method: MethodName) throws -> [String: RPCValue] {
        let pairs = try #require(try self.method(method)["examples"]?.array?.first?["params"]?.array)
        return try Dictionary(
            uniqueKeysWithValues: pairs.map { (try #require($0["name"]?.text), try #require($0["value"])) })
    }

    @Test("every method is there once with every parameter that a request may have, and none besides")
    func complete() throws {
        #expect(try methods.map { $0["name"]?.text } == MethodName.allCases.map(\.rawValue))
        for name in MethodName.allCases {
            let listed = try #require(try method(name)["params"]?.array).compactMap { $0["name"]?.text }
            #expect(Set(listed).count == listed.count)
            for parameter in listed {
                #expect(try !isUnknown(parameter, of: name), "\(name.rawValue): \(parameter)")
            }
            #expect(try isUnknown("nonsense", of: name))
        }
    }

    /// Whether a request is refused because the method has no such parameter.
    private func isUnknown(_ parameter: String, of method: MethodName) throws -> Bool {
        guard case .failure(let error) = try command(method, .object([parameter: nil])) else { return false }
        return error.data?.field == parameter && error.message.contains("is not a parameter of")
    }

    @Test("the example of a method is a request, and without a required parameter it is none")
    func examples() throws {
        for name in MethodName.allCases {
            let example = try example(name)
            let request: RPCValue? = example.isEmpty ? nil : .object(example)
            #expect(throws: Never.self, "\(name.rawValue)") { try command(name, request).get() }
            for parameter in name.parameters where parameter.isRequired {
                var less = example
                #expect(less.removeValue(forKey: parameter.name) != nil, "\(name.rawValue): \(parameter.name)")
                #expect(throws: RPCError.self, "\(name.rawValue) without \(parameter.name)") {
                    try command(name, .object(less)).get()
                }
            }
        }
    }

    @Test("a value of another type than the document's is refused")
    func types() throws {
        for name in MethodName.allCases {
            for parameter in name.parameters {
                for value in Self.values {
                    let faults = SchemaCheck(document: document).faults(of: value, in: parameter.schema.value)
                    if faults.isEmpty { continue }
                    var request = try example(name)
                    request[parameter.name] = value
                    #expect(throws: RPCError.self, "\(name.rawValue): \(parameter.name) = \(value)") {
                        try command(name, .object(request)).get()
                    }
                }
            }
        }
    }

    @Test("the fields of a task, its changes and a filter are those of their decoders, each with its type")
    func fields() throws {
        let check = SchemaCheck(document: document)
        let task: (String, RPCValue) -> [String: RPCValue] = { ["tasks": [["url": "https://a.example/", $0: $1]]] }
        let change: (String, RPCValue) -> [String: RPCValue] = { ["id": 1, "changes": [$0: $1]] }
        let filter: (String, RPCValue) -> [String: RPCValue] = { ["filter": [$0: $1]] }
        for (name, schema, request) in [
            (MethodName.taskAdd, SharedSchema.specification, task), (.taskUpdate, .changes, change),
            (.taskList, .filter, filter),
        ] {
            let properties = try #require(schema.schema.value["properties"]?.object)
            let known: Set<String> =
                switch schema {
                case .specification: Set(TaskField.ofJSON.map(\.name))
                case .changes: Set(TaskField.changeable.map(\.name))
                default: Set(TaskFilter.CodingKeys.allCases.map(\.rawValue))
                }
            #expect(Set(properties.keys) == known)
            #expect(throws: RPCError.self) { try command(name, .object(request("nonsense", 1))).get() }
            for (field, type) in properties {
                for value in Self.values {
                    guard !check.faults(of: value, in: type).isEmpty else { continue }
                    #expect(throws: RPCError.self, "\(schema): \(field) = \(value)") {
                        try command(name, .object(request(field, value))).get()
                    }
                }
            }
        }
        #expect(Set(SharedSchema.summaries.keys) == Set(TaskField.ofJSON.map(\.name)))
    }

    @Test("each example satisfies its schema, with no field that the schema lacks")
    func exampleTypes() throws {
        let check = SchemaCheck(document: document, knowsEveryField: true)
        for name in MethodName.allCases where name != .rpcDiscover {
            let method = try method(name)
            let result = try #require(method["examples"]?.array?.first?["result"]?["value"])
            let schema = try #require(method["result"]?["schema"])
            #expect(check.faults(of: result, in: schema) == [], "\(name.rawValue)")
            for (parameter, value) in try example(name) {
                let schema = try #require(name.parameters.first { $0.name == parameter }).schema.value
                #expect(check.faults(of: value, in: schema) == [], "\(name.rawValue): \(parameter)")
            }
        }
    }

    @Test("results satisfy their schemas, with every field")
    func results() throws {
        func expect(_ value: some Encodable, of name: MethodName) throws {
            let json = try JSONDecoder().decode(RPCValue.self, from: JSONEncoder().encode(value))
            let schema = try #require(try method(name)["result"]?["schema"])
            let check = SchemaCheck(document: document, knowsEveryField: true)
            #expect(check.faults(of: json, in: schema) == [], "\(name.rawValue): \(json)")
        }
        try expect(TaskAddResult(ids: [TaskID(1)], found: []), of: .taskAdd)
        let record = TaskRecord(
            id: TaskID(1), specification: TaskSpecification(url: "https://example.org/a"), owner: 1,
            lifecycle: TaskLifecycle(), createdAt: 1)
        try expect(
            TaskDetail(
                TaskStatus(record),
                history: [TaskAttempt(startedAt: 1, error: TaskFailure(code: .dns, message: "m"))],
                live: LiveTransfer(
                    connections: [LiveConnection(address: nil, first: 0, next: 0, end: nil, rate: 0)],
                    segments: [LiveSegment(first: 0, end: 1)], rateLimits: [LiveRateLimit(scope: .host, rate: 1)])),
            of: .taskGet)
        try expect(TaskListResult(tasks: [], next: nil, severalOwners: false), of: .taskList)
        try expect(TaskCountResult(owners: [.init(owner: 1, tasks: 2)]), of: .taskCount)
        try expect(
            TaskChangeResult(changed: 0, errors: [.init(id: TaskID(1), code: .unknownTask, message: "m")]),
            of: .taskPause)
        try expect(QueueBeginResult(queue: 1), of: .queueBegin)
        try expect(QueuePutResult(entries: 1), of: .queuePut)
        try expect(
            QueueCommitResult(added: 1, updated: 0, unchanged: 0, pruned: 0, ids: [[TaskID(1), TaskID(1)]]),
            of: .queueCommit)
        try expect(
            QueueListResult(batches: [
                .init(batch: "b", tasks: ["queued": 1], bytesDone: 0, bytesTotal: nil, outcome: nil)
            ]), of: .queueList)
        try expect(
            DaemonLimits(download: nil, upload: 1, downloadSource: "command", uploadSource: "schedule"),
            of: .daemonLimits)
        try expect(DaemonReloadResult(notes: ["n"]), of: .daemonReload)
        try expect(DaemonBackupResult(bytes: 1, tasks: 1, lastEvent: 1, journal: "j"), of: .daemonBackup)
        try expect(BackupReadResult(data: "", next: nil), of: .backupRead)
        try expect(Acknowledgement(), of: .daemonShutdown)
        try expect(EventsSubscribeResult(last: 1, journal: "j"), of: .eventsSubscribe)
        var event = TaskEvent(sequence: 1, at: 2, type: .progress)
        event.progress = .init(rate: nil, eta: nil, connections: 0)
        var batch = TaskEvent(
            sequence: 1, at: 2, type: .batchFinished, error: TaskFailure(code: .dns, message: "m"))
        batch.totals = BatchResult(completed: 1, failed: 0, cancelled: 0, bytesDone: 1)
        try expect(EventsListResult(events: [event, batch], next: nil, last: 1, journal: "j"), of: .eventsList)
        try expect(
            DaemonStatus(
                version: "1", pid: 1, uptime: 1, socket: "s", stateDirectory: "d", downloadDirectory: "d", libcurl: "l",
                tasks: Dictionary(uniqueKeysWithValues: TaskState.allCases.map { ($0.rawValue, 0) }), downloadRate: 0,
                uploadRate: 0, lastEvent: 0, schedulePause: .init(until: nil),
                waiting: .init(
                    counted: 1,
                    causes: [.init(reason: "retry", code: .dns, message: nil, tasks: 1, notBefore: nil)]),
                storage: .init(limit: nil, owners: [.init(owner: 1, bytes: 1)]), problems: []), of: .daemonStatus)
    }

    @Test("the notification has the fields of an event, and the document fits into a line")
    func notification() throws {
        let notification = try #require(document["x-notifications"]?.array?.first)
        #expect(notification["name"]?.text == EventNotification.method)
        let event = try JSONDecoder().decode(
            RPCValue.self, from: JSONEncoder().encode(TaskEvent(sequence: 1, at: 2, type: .gap)))
        let listed = try #require(notification["params"]?.array).compactMap { $0["name"]?.text }
        #expect(Set(listed) == Set(try #require(event.object).keys))
        #expect(try JSONEncoder().encode(document).count < MessageLimits.lineLength)
    }

    @Test("every reference leads to a schema or an error of the document")
    func references() throws {
        var found = 0
        func walk(_ value: RPCValue) throws {
            if let path = value["$ref"]?.text {
                found += 1
                #expect(SchemaCheck(document: document).target(of: path) != nil, "\(path)")
            }
            for part in value.object.map({ Array($0.values) }) ?? value.array ?? [] { try walk(part) }
        }
        try walk(document)
        #expect(found > 50)
    }
}
