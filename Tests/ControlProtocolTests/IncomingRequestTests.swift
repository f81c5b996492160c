import ControlProtocol
import FoundationEssentials
import TaskModel
import Testing

@Suite("Requests as they come in")
struct IncomingRequestTests {
    private func decode(_ json: String) throws -> IncomingRequest {
        try JSONDecoder().decode(IncomingRequest.self, from: Data(json.utf8))
    }

    private func command(_ method: String, _ params: String? = nil) throws -> Command {
        let tail = params.map { #","params":\#($0)"# } ?? ""
        return try decode(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)"\#(tail)}"#).command.get()
    }

    private func error(_ json: String) throws -> RPCError {
        let command = try decode(json).command
        guard case .failure(let error) = command else {
            Issue.record("\(json) was taken")
            return RPCError(code: 0, message: "")
        }
        return error
    }

    private func error(_ method: String, _ params: String?) throws -> RPCError {
        let tail = params.map { #","params":\#($0)"# } ?? ""
        return try error(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)"\#(tail)}"#)
    }

    // MARK: - Commands

    @Test("task.add takes tasks in order")
    func taskAdd() throws {
        let json = #"{"tasks":[{"url":"https://a.example/1"},{"url":"https://a.example/2","output":"b"}]}"#
        guard case .taskAdd(let parameters) = try command("task.add", json) else {
            Issue.record("another command")
            return
        }
        #expect(parameters.tasks.map(\.url) == ["https://a.example/1", "https://a.example/2"])
        #expect(parameters.tasks.map(\.output) == [nil, "b"])
    }

    @Test("task.get and task.list")
    func reading() throws {
        guard case .taskGet(let get) = try command("task.get", #"{"id":7}"#),
            case .taskList(let all) = try command("task.list"),
            case .taskList(let some) = try command(
                "task.list", #"{"filter":{"states":["failed"],"batch":"b"},"limit":3,"after":9,"newest":5}"#)
        else {
            Issue.record("another command")
            return
        }
        #expect(get.id == TaskID(7))
        #expect(all.filter == nil && all.limit == nil && all.after == nil && all.newest == nil)
        #expect(some.filter == TaskFilter(states: [.failed], batch: "b"))
        #expect(some.limit == 3 && some.after == TaskID(9) && some.newest == 5)
    }

    @Test(
        "commands on many tasks take ids or a filter",
        arguments: ["task.pause", "task.resume", "task.cancel", "task.remove", "task.retry"])
    func selections(_ method: String) throws {
        func parameters(_ json: String) throws -> TaskSelectionParameters? {
            switch (try command(method, json), method) {
            case (.taskPause(let parameters), "task.pause"): parameters
            case (.taskResume(let parameters), "task.resume"): parameters
            case (.taskCancel(let parameters), "task.cancel"): parameters
            case (.taskRemove(let parameters), "task.remove"): parameters
            case (.taskRetry(let parameters), "task.retry"): parameters
            default: nil
            }
        }
        let ids = try #require(try parameters(#"{"ids":[1,2],"deleteFile":true}"#))
        #expect(ids.ids == [TaskID(1), TaskID(2)] && ids.filter == nil && ids.deleteFile == true)
        let filter = try #require(try parameters(#"{"filter":{}}"#))
        #expect(filter.ids == nil && filter.filter == TaskFilter() && filter.deleteFile == nil)
    }

    @Test("task.update takes an id and the fields to change")
    func taskUpdate() throws {
        let json = #"{"id":7,"changes":{"url":"https://a.example/2","limit":null}}"#
        guard case .taskUpdate(let parameters) = try command("task.update", json) else {
            Issue.record("another command")
            return
        }
        #expect(parameters.selection == .task(TaskID(7)))
        #expect(parameters.changes.url == "https://a.example/2" && parameters.changes.limit == .takeBack)
        #expect(parameters.changes.output == nil)
    }

    @Test("task.update takes ids or a filter in place of the id, and comes back as it went")
    func taskUpdateOfSeveral() throws {
        for (json, selection) in [
            (#"{"changes":{"limit":5},"ids":[7,8]}"#, TaskUpdateParameters.Selection.tasks([TaskID(7), TaskID(8)])),
            (#"{"changes":{"limit":5},"filter":{"batch":"b"}}"#, .matching(TaskFilter(batch: "b"))),
            (#"{"changes":{"limit":5},"id":7}"#, .task(TaskID(7))),
        ] {
            guard case .taskUpdate(let parameters) = try command("task.update", json) else {
                Issue.record("another command")
                continue
            }
            #expect(parameters.selection == selection)
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            #expect(String(decoding: try encoder.encode(parameters), as: UTF8.self) == json)
        }
    }

    @Test(
        "a fault of task.update has its place",
        arguments: [
            (#"{"id":7}"#, "changes"), (#"{"changes":{}}"#, "id"), (#"{"id":7,"ids":[8],"changes":{}}"#, "id"),
            (#"{"id":7,"changes":[]}"#, "changes"),
            (#"{"id":7,"changes":null}"#, "changes"), (#"{"id":7,"changes":{"limit":"x"}}"#, "changes.limit"),
            (#"{"id":7,"changes":{"metalink":true}}"#, "changes.metalink"),
            (#"{"id":7,"changes":{"urls":""}}"#, "changes.urls"), (#"{"id":7,"url":"http://h/","changes":{}}"#, "url"),
        ])
    func wrongUpdate(params: String, field: String) throws {
        let error = try error("task.update", params)
        #expect(error.code == RPCError.Number.invalidParameters)
        #expect(error.data?.field == field)
    }

    @Test("queue.begin, queue.put, queue.commit and queue.abort")
    func queues() throws {
        guard case .queueBegin(let anonymous) = try command("queue.begin"),
            case .queueBegin(let named) = try command("queue.begin", #"{"batch":"nightly"}"#),
            case .queuePut(let put) = try command(
                "queue.put", #"{"queue":4,"entries":[{"url":"https://a.example/1"}]}"#),
            case .queueCommit(let commit) = try command("queue.commit", #"{"queue":4,"prune":true,"dryRun":false}"#),
            case .queueAbort(let abort) = try command("queue.abort", #"{"queue":4}"#)
        else {
            Issue.record("another command")
            return
        }
        #expect(anonymous.batch == nil && named.batch == "nightly")
        #expect(put.queue == 4 && put.entries.map(\.url) == ["https://a.example/1"])
        #expect(commit.queue == 4 && commit.prune == true && commit.dryRun == false)
        #expect(abort.queue == 4)
    }

    @Test(
        "a rate of the daemon is a number, 0 for none, null for the configured one, and absent for the current one",
        arguments: [
            (nil, nil, nil), ("{}", nil, nil), (#"{"download":5}"#, .limit(5), nil),
            (#"{"upload":0}"#, nil, .unlimited), (#"{"download":null,"upload":7}"#, .configured, .limit(7)),
        ] as [(String?, DaemonLimitsParameters.Rate?, DaemonLimitsParameters.Rate?)])
    func limits(params: String?, download: DaemonLimitsParameters.Rate?, upload: DaemonLimitsParameters.Rate?) throws {
        guard case .daemonLimits(let parameters) = try command("daemon.limits", params) else {
            Issue.record("another command")
            return
        }
        #expect((parameters.download, parameters.upload) == (download, upload))
        let text = String(decoding: try JSONEncoder().encode(parameters), as: UTF8.self)
        guard case .daemonLimits(let again) = try command("daemon.limits", text) else {
            Issue.record("another command")
            return
        }
        #expect((again.download, again.upload) == (download, upload))
    }

    @Test("a rate that is none is refused by name")
    func wrongLimits() throws {
        #expect(try error("daemon.limits", #"{"download":-1}"#).data?.field == "download")
        #expect(try error("daemon.limits", #"{"upload":"1M"}"#).data?.field == "upload")
        #expect(try error("daemon.limits", #"{"downlaod":1}"#).data?.field == "downlaod")
    }

    @Test("commands without parameters take none, or an empty object")
    func withoutParameters() throws {
        for params in [nil, "{}"] {
            guard case .queueList = try command("queue.list", params),
                case .daemonReload = try command("daemon.reload", params),
                case .daemonShutdown = try command("daemon.shutdown", params)
            else {
                Issue.record("another command")
                return
            }
        }
        #expect(try error("daemon.reload", #"{"now":true}"#).data?.field == "now")
    }

    @Test("daemon.status, with metrics or without")
    func status() throws {
        for (params, metrics) in [(nil, nil), ("{}", nil), (#"{"metrics":true}"#, true)] as [(String?, Bool?)] {
            guard case .daemonStatus(let parameters) = try command("daemon.status", params) else {
                Issue.record("another command")
                return
            }
            #expect(parameters.metrics == metrics)
        }
        #expect(try error("daemon.status", #"{"now":true}"#).data?.field == "now")
    }

    @Test("events.subscribe, from now on or after a number")
    func subscribing() throws {
        guard case .eventsSubscribe(let now) = try command("events.subscribe"),
            case .eventsSubscribe(let after) = try command("events.subscribe", #"{"after":12}"#)
        else {
            Issue.record("another command")
            return
        }
        #expect(now.after == nil && after.after == 12)
    }

    // MARK: - Errors

    @Test(
        "what is not a request of version 2.0 is an invalid request",
        arguments: [
            "1", "null", "[]", #""text""#, "{}", #"{"jsonrpc":"1.0","id":1,"method":"daemon.status"}"#,
            #"{"jsonrpc":2.0,"id":1,"method":"daemon.status"}"#, #"{"id":1,"method":"daemon.status"}"#,
            #"{"jsonrpc":"2.0","id":1}"#, #"{"jsonrpc":"2.0","id":1,"method":7}"#,
            #"{"jsonrpc":"2.0","id":1,"method":null}"#, #"{"jsonrpc":"2.0","id":{},"method":"daemon.status"}"#,
            #"{"jsonrpc":"2.0","id":true,"method":"daemon.status"}"#,
            #"{"jsonrpc":"2.0","id":1.5,"method":"daemon.status"}"#,
        ])
    func invalidRequest(_ json: String) throws {
        #expect(try error(json).code == RPCError.Number.invalidRequest)
    }

    @Test("an invalid request keeps its id where it has a sound one, and is never taken for a notification")
    func idOfInvalidRequest() throws {
        #expect(try decode("1").id == .null)
        #expect(try decode("{}").id == .null)
        #expect(try decode(#"{"id":5}"#).id == .number(5))
        #expect(try decode(#"{"jsonrpc":"2.0","id":[],"method":"daemon.status"}"#).id == .null)
        #expect(try decode(#"{"jsonrpc":"2.0","id":"x"}"#).id == .string("x"))
    }

    @Test("a request without an id is a notification; one with the id null is not")
    func notification() throws {
        #expect(try decode(#"{"jsonrpc":"2.0","method":"daemon.status"}"#).id == nil)
        #expect(try decode(#"{"jsonrpc":"2.0","id":null,"method":"daemon.status"}"#).id == .null)
    }

    @Test("an unknown method is told with the nearest one")
    func unknownMethod() throws {
        let near = try error("task.ad", nil)
        #expect(near.code == RPCError.Number.methodNotFound)
        #expect(near.message.contains("did you mean task.add?"))
        #expect(near.data == .init(code: .invalid, field: "method"))
        let far = try error("complete.nonsense.without.likeness", nil)
        #expect(far.code == RPCError.Number.methodNotFound)
        #expect(!far.message.contains("did you mean"))
    }

    @Test("a stranger's method name cannot forge lines or colours, nor fill a screen (A22)")
    func printable() throws {
        let error = try error(#"x\u001b[31m\n\u0085\u202e"# + String(repeating: "y", count: 10_000), nil)
        #expect(error.message.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        #expect(!error.message.unicodeScalars.contains { $0.value == 0x85 || $0.value == 0x202E })
        #expect(error.message.utf8.count < 300)
    }

    @Test("an unknown parameter is told with the nearest one")
    func unknownParameter() throws {
        let error = try error("task.list", #"{"limt":3}"#)
        #expect(error.code == RPCError.Number.invalidParameters)
        #expect(error.data == .init(code: .invalid, field: "limt"))
        #expect(error.message.contains("did you mean limit?"))
    }

    @Test("a misspelt condition of a filter selects nothing: it would have meant every task")
    func unknownCondition() throws {
        for method in ["task.remove", "task.cancel", "task.pause", "task.list"] {
            let error = try error(method, #"{"filter":{"state":"failed"}}"#)
            #expect(error.data == .init(code: .invalid, field: "filter.state"), "\(method)")
            #expect(error.message.contains("did you mean states?"), "\(method)")
        }
    }

    @Test("parameters that are missing, or no object, are told")
    func missingParameters() throws {
        for method in ["task.add", "task.get", "task.pause", "queue.put", "queue.commit", "queue.abort"] {
            #expect(try error(method, nil).data?.field == "params", "\(method)")
            #expect(try error(method, "[1]").data?.field == "params", "\(method)")
            #expect(try error(method, "7").code == RPCError.Number.invalidParameters, "\(method)")
        }
    }

    @Test(
        "a value of the wrong type names its field",
        arguments: [
            ("task.get", #"{"id":"seven"}"#, "id"), ("task.get", "{}", "id"),
            ("task.list", #"{"filter":{"states":["no-such"]}}"#, "filter.states[0]"),
            ("task.list", #"{"filter":7}"#, "filter"), ("task.pause", #"{"ids":[1,"x"]}"#, "ids[1]"),
            ("task.pause", #"{"ids":7}"#, "ids"), ("task.remove", #"{"ids":[1],"deleteFile":1}"#, "deleteFile"),
            ("task.add", "{}", "tasks"), ("task.add", #"{"tasks":7}"#, "tasks"),
            ("task.add", #"{"tasks":[7]}"#, "tasks[0]"),
            (
                "task.add", #"{"tasks":[{"url":"https://a.example/"},{"url":"https://b.example/","output":7}]}"#,
                "tasks[1].output"
            ),
            ("task.add", #"{"tasks":[{"output":"x"}]}"#, "tasks[0].url"),
            ("task.add", #"{"tasks":[{"url":"https://a.example/","priority":"urgent"}]}"#, "tasks[0].priority"),
            ("task.add", #"{"tasks":[{"url":"https://a.example/","ouput":"x"}]}"#, "tasks[0].ouput"),
            ("queue.put", #"{"queue":1,"entries":[{"url":1}]}"#, "entries[0].url"),
            ("queue.put", #"{"queue":1}"#, "entries"), ("queue.commit", #"{"queue":"1"}"#, "queue"),
            ("queue.begin", #"{"batch":1}"#, "batch"), ("events.subscribe", #"{"after":"x"}"#, "after"),
        ])
    func wrongType(_ method: String, _ params: String, _ field: String) throws {
        let error = try error(method, params)
        #expect(error.code == RPCError.Number.invalidParameters)
        #expect(error.data?.field == field)
        #expect(error.message.hasPrefix(field + ": "))
    }

    @Test(
        "a number that no field can hold is told with its field", arguments: ["1e999", "99999999999999999999", "0.5"])
    func hugeNumber(_ number: String) throws {
        #expect(try error("task.get", #"{"id":\#(number)}"#).data?.field == "id")
        let inTask = #"{"tasks":[{"url":"https://a.example/","maxSize":\#(number)}]}"#
        #expect(try error("task.add", inTask).data?.field == "tasks[0].maxSize")
    }
}
