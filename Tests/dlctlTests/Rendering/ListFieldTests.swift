import FoundationEssentials
import TaskModel
import Testing

@testable import dlctl

@Suite("The fields of a list") struct ListFieldTests {
    @Test("every field of a task's JSON is one, and no other")
    func complete() throws {
        struct Anything: Decodable { init(from decoder: any Decoder) {} }
        let object = try JSONDecoder().decode([String: Anything].self, from: JSONEncoder().encode(sampleTask()))
        #expect(Set(object.keys) == Set(ListField.allCases.map(\.rawValue)))
    }

    @Test("an unknown field is named, with the nearest one and all others")
    func unknown() throws {
        #expect(try ListField.list("id,BYTESTOTAL,url", option: "--columns") == [.id, .bytesTotal, .url])
        for text in ["id,bytesTotl", "", "id,"] {
            let failure = #expect(throws: Failure.self) { try ListField.list(text, option: "--columns") }
            #expect(failure?.status == .usage && failure?.field == "--columns")
            #expect(failure?.message.contains("the fields are id, kind, state,") == true)
        }
        let failure = #expect(throws: Failure.self) { try ListField.list("bytesTotl", option: "--columns") }
        #expect(failure?.message.contains("did you mean bytesTotal?") == true)
    }

    @Test("a cell shows what is unknown as a dash, and no control character")
    func cells() {
        var task = sampleTask(name: "a\u{1B}[2J", error: TaskFailure(code: .dns, message: "m\n"))
        task.owner = 4_000_000_123
        #expect(ListField.name.cell(task) == "a\\u{1B}[2J")
        #expect(ListField.error.cell(task) == "dns: m\\n")
        #expect(ListField.bytesTotal.cell(task) == "-")
        #expect(ListField.owner.cell(task) == "4000000123")
        for field in ListField.allCases {
            #expect(!field.cell(task).unicodeScalars.contains { $0.value < 0x20 })
        }
    }
}
