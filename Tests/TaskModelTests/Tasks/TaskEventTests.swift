import FoundationEssentials
import TaskModel
import Testing

@Suite("Events and filters in JSON")
struct TaskEventTests {
    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    @Test("an event tells all its fields, null where there is nothing")
    func event() throws {
        let gap = TaskEvent(sequence: 4, at: 5, type: .gap)
        #expect(
            try Self.json(gap)
                == #"{"at":5,"batch":null,"bytesDone":null,"bytesTotal":null,"error":null,"id":null,"key":null,"#
                + #""kind":null,"owner":null,"path":null,"progress":null,"reason":null,"sequence":4,"state":null,"#
                + #""totals":null,"type":"gap","url":null}"#)
        let failed = TaskEvent(
            sequence: 9, at: 5, type: .failed, id: TaskID(3), state: .failed, reason: .retry,
            error: TaskFailure(code: .diskFull, message: "m"))
        for event in [gap, failed] {
            #expect(try JSONDecoder().decode(TaskEvent.self, from: Data(Self.json(event).utf8)) == event)
        }
        #expect(
            try Self.json(failed).contains(#""error":{"code":"disk-full","httpStatus":null,"message":"m"},"id":3,"#))
    }

    @Test("a filter may leave everything open")
    func filter() throws {
        #expect(try JSONDecoder().decode(TaskFilter.self, from: Data("{}".utf8)) == TaskFilter())
        let filter = TaskFilter(states: [.failed, .active], batch: "b", search: "s", owner: 7)
        #expect(try JSONDecoder().decode(TaskFilter.self, from: Data(Self.json(filter).utf8)) == filter)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(TaskFilter.self, from: Data(#"{"states":["done"]}"#.utf8))
        }
    }

    @Test("A38: a text to search for has a greatest length in bytes")
    func longSearch() throws {
        func filter(_ count: Int) throws -> TaskFilter {
            let text = String(repeating: "é", count: count)
            return try JSONDecoder().decode(TaskFilter.self, from: Data(#"{"search":"\#(text)"}"#.utf8))
        }
        #expect(try filter(512).search?.utf8.count == TaskFilter.maximumSearch)
        #expect(throws: FieldError(field: "filter.search", message: "is longer than 1024 bytes")) { try filter(513) }
    }

    @Test("a number is a number, an error code a word")
    func simple() throws {
        #expect(try Self.json([TaskID(3), TaskID(Int64.max)]) == "[3,9223372036854775807]")
        #expect(try Self.json(ErrorCode.http(404)) == "\"http-404\"")
        #expect(TaskID(1) < TaskID(2))
        #expect(FieldError(field: "a", message: "is b").description == "a: is b")
    }
}
