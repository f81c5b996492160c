import ControlProtocol
import FoundationEssentials
import TaskModel
import Testing

@Suite("Messages as they go out")
struct MessagesTests {
    private func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    @Test(
        "an id comes back in the form it had",
        arguments: ["0", "-7", "9223372036854775807", #""""#, #""7""#, #""a b""#, "null"])
    func requestIDs(_ json: String) throws {
        let id = try JSONDecoder().decode([RequestID].self, from: Data("[\(json)]".utf8))
        #expect(try encode(id) == "[\(json)]")
    }

    @Test("an answer has a result or an error, never both")
    func responses() throws {
        #expect(
            try encode(RPCResponse(id: .number(1), outcome: .success(TaskAddResult(ids: [TaskID(3), TaskID(4)]))))
                == #"{"id":1,"jsonrpc":"2.0","result":{"found":[],"ids":[3,4],"notes":[]}}"#)
        #expect(
            try encode(RPCResponse<Acknowledgement>(id: .null, outcome: .failure(.parse("not JSON"))))
                == #"{"error":{"code":-32700,"data":{"code":"invalid"},"message":"not JSON"},"id":null,"#
                + #""jsonrpc":"2.0"}"#)
    }

    @Test("a client reads back what the server wrote")
    func roundTrip() throws {
        let refusal = RPCError.refused(.pathNotAllowed, "not there")
        for outcome in [Result<TaskAddResult, RPCError>.success(TaskAddResult(ids: [TaskID(3)])), .failure(refusal)] {
            let text = try encode(RPCResponse(id: .number(8), outcome: outcome))
            let response = try JSONDecoder().decode(IncomingResponse<TaskAddResult>.self, from: Data(text.utf8))
            #expect(response.id == .number(8))
            #expect(response.outcome == outcome)
        }
    }

    @Test("an answer of a daemon that does not say what it found has found nothing")
    func withoutFound() throws {
        let result = try JSONDecoder().decode(TaskAddResult.self, from: Data(#"{"ids":[3]}"#.utf8))
        #expect(result == TaskAddResult(ids: [TaskID(3)]))
    }

    @Test("what a client sends is what the server decodes, for every method")
    func requests() throws {
        for method in MethodName.allCases {
            let text = try encode(OutgoingRequest(id: 5, method: method, parameters: NoParameters()))
            let request = try JSONDecoder().decode(IncomingRequest.self, from: Data(text.utf8))
            #expect(request.id == .number(5))
            if case .failure(let error) = request.command {
                #expect(error.code == RPCError.Number.invalidParameters, "\(method)")
            }
        }
    }

    @Test("an event is a notification, and its unknowns are null")
    func event() throws {
        let event = TaskEvent(sequence: 4, at: 5, type: .gap)
        let text = try encode(EventNotification(event: event))
        #expect(
            text
                == #"{"jsonrpc":"2.0","method":"event","params":{"at":5,"batch":null,"bytesDone":null,"#
                + #""bytesTotal":null,"error":null,"id":null,"key":null,"kind":null,"owner":null,"path":null,"#
                + #""progress":null,"reason":null,"sequence":4,"state":null,"totals":null,"type":"gap","url":null}}"#)
        #expect(try JSONDecoder().decode(EventNotification.self, from: Data(text.utf8)).event == event)
    }

    @Test("a task that is told has every field, what is not known as null")
    func taskStatus() throws {
        let record = TaskRecord(
            id: TaskID(1), specification: TaskSpecification(url: "https://a.example/f"), owner: 1000,
            lifecycle: TaskLifecycle(), createdAt: 9)
        #expect(
            try encode(TaskStatus(record))
                == #"{"afterTask":null,"attempts":0,"batch":null,"bytesDone":0,"bytesFetched":0,"bytesTotal":null,"#
                + #""checksum":null,"checksumURL":null,"connections":0,"createdAt":9,"error":null,"#
                + #""eta":null,"fileState":null,"finishedAt":null,"id":1,"idleSince":null,"key":null,"#
                + #""kind":"download","name":null,"notBefore":null,"owner":1000,"path":null,"phase":null,"#
                + #""priority":"normal","rate":null,"reason":null,"reconnectsAt":null,"startedAt":null,"state":"queued","#
                + #""url":"https://a.example/f","verified":false}"#)
    }

    @Test("the last page says so with null")
    func lastPage() throws {
        #expect(try encode(TaskListResult(tasks: [], next: nil)) == #"{"next":null,"severalOwners":null,"tasks":[]}"#)
    }

    @Test("a field's error becomes invalid parameters, with its place before it")
    func fieldError() {
        let error = RPCError(
            FieldError(field: "output", code: .pathNotAllowed, message: "is a path"), prefix: "tasks[3].")
        #expect(error.code == RPCError.Number.invalidParameters)
        #expect(error.message == "tasks[3].output: is a path")
        #expect(error.data == .init(code: .pathNotAllowed, field: "tasks[3].output"))
    }
}
