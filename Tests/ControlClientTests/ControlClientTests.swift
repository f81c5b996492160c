import ControlClient
import ControlProtocol
import Glibc
import TaskModel
import TestSupport
import Testing

@Suite struct ControlClientTests {
    @Test("task.add sends one line and returns the ids in order")
    func add() throws {
        let daemon = try ScriptedDaemon { .lines([answer($0, #"{"ids":[7,8]}"#)]) }
        let client = try ControlClient(path: daemon.path)
        let ids = try client.add([TaskSpecification(url: "http://a/1"), TaskSpecification(url: "http://a/2")])
        #expect(ids == [TaskID(7), TaskID(8)])
        let line = try #require(daemon.received.first)
        #expect(line.contains(#""method":"task.add""#))
        #expect(line.contains(#"["http://a/1","http://a/2"]"#))
    }

    @Test("an error answer is thrown with its code and field")
    func rpcError() throws {
        let daemon = try ScriptedDaemon {
            let error = #"{"code":-32001,"message":"no task has the id 9","data":{"code":"unknown-task","field":"id"}}"#
            return .lines([#"{"jsonrpc":"2.0","id":\#(requestID($0)),"error":\#(error)}"#])
        }
        let client = try ControlClient(path: daemon.path)
        #expect(throws: ClientError.rpc(.unknownTask(TaskID(9)))) { try client.task(TaskID(9)) }
        #expect(try client.taskIfKnown(TaskID(9)) == nil)
    }

    @Test("an error without id, as a line that cannot be read gets, ends the call too")
    func errorWithoutID() throws {
        let daemon = try ScriptedDaemon { _ in
            .lines([#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too long"}}"#])
        }
        let client = try ControlClient(path: daemon.path)
        #expect(throws: ClientError.rpc(RPCError(code: -32600, message: "too long"))) { try client.status() }
    }

    @Test("events that come before an answer are kept, in order")
    func eventsBetween() throws {
        let event: @Sendable (Int) -> String = { sequence in
            #"{"jsonrpc":"2.0","method":"event","params":{"sequence":\#(sequence),"at":1,"type":"completed","id":3}}"#
        }
        let daemon = try ScriptedDaemon { line in
            line.contains("subscribe")
                ? .lines([answer(line, #"{"last":4,"journal":"j"}"#), event(5)])
                : .lines([event(6), #"{"jsonrpc":"2.0","method":"news"}"#, answer(line, #"{"batches":[]}"#), event(7)])
        }
        let client = try ControlClient(path: daemon.path)
        #expect(try client.subscribe() == EventsSubscribeResult(last: 4, journal: "j"))
        #expect(try client.queues().batches.isEmpty)
        var sequences: [Int64] = []
        for _ in 0..<3 { sequences += try client.nextEvent(until: .after(seconds: 10)).map { [$0.sequence] } ?? [] }
        #expect(sequences == [5, 6, 7])
    }

    @Test("waiting for an event ends at its deadline without one")
    func noEvent() throws {
        let daemon = try ScriptedDaemon { .lines([answer($0, #"{"last":0}"#)]) }
        let client = try ControlClient(path: daemon.path)
        try client.subscribe()
        #expect(try client.nextEvent(until: .after(seconds: 0)) == nil)
    }

    @Test("a daemon that does not answer is given up at the deadline, and its late answer is not taken for another's")
    func lateAnswer() throws {
        let daemon = try ScriptedDaemon { line in
            requestID(line) == 1
                ? .lines([])
                : .lines([#"{"jsonrpc":"2.0","id":1,"result":{"queue":1}}"#, answer(line, #"{"queue":2}"#)])
        }
        let client = try ControlClient(path: daemon.path)
        client.deadline = .after(seconds: 0.01)
        #expect(throws: ClientError.timedOut) { try client.beginQueue(batch: nil) }
        client.deadline = .never
        #expect(try client.beginQueue(batch: nil) == 2)
    }

    @Test("a call that may take long ends at the time-out as well, if the daemon answers nothing else either")
    func mute() throws {
        let daemon = try ScriptedDaemon { _ in .lines([]) }
        let client = try ControlClient(path: daemon.path)
        client.answerTimeout = 0.2
        #expect(throws: ClientError.timedOut) { try client.add([TaskSpecification(url: "http://a/1")]) }
        #expect(daemon.received.count == 2)
    }

    @Test("a call that may take long goes on after the time-out while the daemon answers others, until the deadline")
    func busy() throws {
        let daemon = try ScriptedDaemon { line in
            let isProbe = line.contains("daemon.status")
            if !isProbe { usleep(500_000) }
            let error = #""error":{"code":-32603,"message":"busy"}"#
            return .lines([isProbe ? #"{"jsonrpc":"2.0","id":1,\#(error)}"# : answer(line, #"{"ids":[7]}"#)])
        }
        let client = try ControlClient(path: daemon.path)
        client.answerTimeout = 0.1
        #expect(try client.add([TaskSpecification(url: "http://a/1")]) == [TaskID(7)])
        client.deadline = .after(seconds: 0.1)
        #expect(throws: ClientError.timedOut) { try client.add([TaskSpecification(url: "http://a/1")]) }
    }

    @Test("a connection that ends in the middle of an answer is lost")
    func connectionLost() throws {
        let daemon = try ScriptedDaemon { _ in .fragment(#"{"jsonrpc":"2.0","#) }
        let client = try ControlClient(path: daemon.path)
        #expect(throws: ClientError.connectionLost(path: daemon.path)) { try client.status() }
        // The next call writes to a socket whose peer has closed: the result is an error, not SIGPIPE.
        #expect(throws: ClientError.connectionLost(path: daemon.path)) { try client.status() }
    }

    @Test("an answer that is no JSON is malformed")
    func malformed() throws {
        let daemon = try ScriptedDaemon { _ in .lines(["hello"]) }
        let client = try ControlClient(path: daemon.path)
        #expect {
            try client.status()
        } throws: {
            if case .malformedAnswer? = $0 as? ClientError { true } else { false }
        }
    }

    @Test(
        "of an answer that cannot be read, the field at fault is named and nothing of the decoder's words",
        arguments: [
            ("{", "it is not the expected JSON"), (#"{"id":1}"#, "result"),
            (#"{"id":1,"result":{"ids":[7,"x"]}}"#, "result.ids[1]"), (#"{"id":1,"result":{}}"#, "result.ids"),
            (#"{"id":1,"result":{"ids":null}}"#, "result.ids"),
        ])
    func faultOfAnswer(line: String, place: String) throws {
        let daemon = try ScriptedDaemon { _ in .lines([line]) }
        let client = try ControlClient(path: daemon.path)
        #expect {
            try client.add([])
        } throws: { error in
            "\(error)" == "the daemon sent an invalid response: \(place)"
        }
    }

    @Test("a call that fits into no line is not sent")
    func tooLong() throws {
        let daemon = try ScriptedDaemon { .lines([answer($0, #"{"ids":[]}"#)]) }
        let client = try ControlClient(path: daemon.path)
        let long = TaskSpecification(url: String(repeating: "u", count: MessageLimits.lineLength))
        #expect {
            try client.add([long])
        } throws: {
            if case .callTooLong? = $0 as? ClientError { true } else { false }
        }
        #expect(try client.add([]) == [])
        #expect(daemon.received.count == 1)
    }

    @Test("a raw call passes parameters and result through")
    func raw() throws {
        let result = #"{"a":[1,2.5,null,true,"x"]}"#
        let daemon = try ScriptedDaemon { .lines([answer($0, result)]) }
        let client = try ControlClient(path: daemon.path)
        let value = try client.call(method: "no.such", parameters: .object(["n": .integer(1)]))
        #expect(value == .object(["a": .array([.integer(1), .number(2.5), .null, .bool(true), .string("x")])]))
        let line = try #require(daemon.received.first)
        #expect(line.contains(#""method":"no.such""#))
        #expect(line.contains(#""params":{"n":1}"#))
    }

    @Test("pages are asked for one after another, and the limit counts over all of them")
    func pages() throws {
        let daemon = try ScriptedDaemon { line in
            let first = line.contains(#""newest":3"#)
            let tasks = first ? [task(4), task(5)] : [task(6)]
            return .lines([answer(line, #"{"tasks":[\#(tasks.joined(separator: ","))],"next":\#(first ? "5" : "6")}"#)])
        }
        let client = try ControlClient(path: daemon.path)
        var ids: [TaskID] = []
        try client.forEachPage(limit: 3, newest: 3) { page in
            ids += page.map(\.id)
            return true
        }
        #expect(ids == [4, 5, 6].map { TaskID($0) })
        let second = try #require(daemon.received.dropFirst().first)
        #expect(daemon.received.count == 2)
        #expect(second.contains(#""after":5"#))
        #expect(second.contains(#""limit":1"#))
        #expect(!second.contains("newest"))
    }

    @Test("pages that lead in a circle end with an error")
    func circle() throws {
        let daemon = try ScriptedDaemon { .lines([answer($0, #"{"tasks":[],"next":5}"#)]) }
        let client = try ControlClient(path: daemon.path)
        #expect(throws: ClientError.self) { try client.forEachPage { _ in true } }
    }

    @Test("without a daemon the error names the place and the reason")
    func noDaemon() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("none")
        #expect(throws: ClientError.noDaemon(paths: [path], errno: ENOENT)) { try ControlClient(path: path) }
        #expect(throws: ClientError.unusablePath("")) { try ControlClient(path: "") }
        let long = "/" + String(repeating: "x", count: SocketPath.maximumLength)
        #expect(throws: ClientError.unusablePath(long)) { try ControlClient(path: long) }
    }

    @Test("the user's socket is taken when it answers")
    func userSocket() throws {
        let daemon = try ScriptedDaemon { _ in .close }
        let runtime = try TemporaryDirectory()
        try runtime.makeDirectory("dld")
        let link = runtime.file("dld/dld.sock")
        try #require(symlink(daemon.path, link) == 0)
        let client = try ControlClient(environment: ["XDG_RUNTIME_DIR": runtime.path])
        #expect(client.path == link)
    }
}

private func task(_ id: Int) -> String {
    #"{"id":\#(id),"kind":"download","state":"queued","url":"http://a/","owner":0,"priority":"normal","bytesDone":0,"#
        + #""bytesFetched":0,"connections":0,"attempts":0,"createdAt":1,"verified":false}"#
}
