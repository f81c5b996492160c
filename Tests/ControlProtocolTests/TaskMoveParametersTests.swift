import FoundationEssentials
import TaskModel
import Testing

@testable import ControlProtocol

@Suite("The parameters of task.move")
struct TaskMoveParametersTests {
    private func decode(_ json: String) throws -> TaskMoveParameters {
        try JSONDecoder().decode(TaskMoveParameters.self, from: Data(json.utf8))
    }

    @Test("one place, in each of its forms, comes back as it went")
    func forms() throws {
        for (json, placement) in [
            (#"{"id":7,"first":true}"#, TaskPlacement.first), (#"{"id":7,"last":true}"#, .last),
            (#"{"before":3,"id":7}"#, .before(TaskID(3))), (#"{"id":7,"first":true,"last":false}"#, .first),
        ] {
            let parameters = try decode(json)
            #expect(parameters.id == TaskID(7) && parameters.placement == placement)
            let again = try JSONDecoder().decode(TaskMoveParameters.self, from: JSONEncoder().encode(parameters))
            #expect(again.placement == placement)
        }
    }

    @Test(
        "no place, or two, are refused",
        arguments: [#"{"id":7}"#, #"{"id":7,"first":true,"last":true}"#, #"{"id":7,"first":false}"#])
    func refused(json: String) {
        #expect(throws: FieldError(field: "before", message: "give exactly one of first, last and before")) {
            try decode(json)
        }
    }
}

@Suite("Lists of tasks in calls")
struct SpecificationListTests {
    private func tasks(_ json: String) throws -> [TaskSpecification] {
        try JSONDecoder().decode(TaskAddParameters.self, from: Data(#"{"tasks":\#(json)}"#.utf8)).tasks
    }

    @Test("URLs alone and objects may stand side by side")
    func mixed() throws {
        let found = try tasks(
            #"["http://h/1",{"url":"http://h/2","output":"o"},"http://h/3","http://h/4",{"url":"http://h/5"}]"#)
        #expect(found.map(\.url) == (1...5).map { "http://h/\($0)" })
        #expect(found.map(\.output) == [nil, "o", nil, nil, nil])
    }

    @Test("a task that is nothing but its URL is written as a text")
    func written() throws {
        var task = TaskSpecification(url: "http://h/2")
        task.key = "k"
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = try encoder.encode(TaskAddParameters(tasks: [TaskSpecification(url: "http://h/1"), task]))
        #expect(String(decoding: json, as: UTF8.self) == #"{"tasks":["http://h/1",{"key":"k","url":"http://h/2"}]}"#)
    }

    @Test("what is neither is named with its place", arguments: [#"["http://h/1",5]"#, #"["http://h/1",null]"#])
    func wrong(json: String) {
        #expect(throws: FieldError(field: "tasks[1]", message: "must be an object or a URL string")) {
            try tasks(json)
        }
    }
}
