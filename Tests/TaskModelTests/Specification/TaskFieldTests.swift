import FoundationEssentials
import Testing

@testable import TaskModel

@Suite("The table of fields")
struct TaskFieldTests {
    private static let changeable = [
        "url", "output", "connections", "limit", "headers", "priority", "startAt", "directory", "user", "password",
        "checksum", "mirrors", "proxy", "insecure", "checksumURL", "maxSize", "onConflict", "nameFrom", "noMtime",
        "cookies",
        "netrc", "userAgent", "referer", "caCertificates", "connectTimeout", "stallTimeout", "maxAttempts", "afterTask",
        "batch",
    ]

    @Test("each name is that of one field, each stored value has a field, and a set has room for all")
    func complete() {
        #expect(Set(TaskField.all.map(\.name)).count == TaskField.all.count)
        #expect(TaskField.all.map(\.index) == Array(0..<TaskField.all.count))
        #expect(TaskField.all.count <= UInt64.bitWidth)
        let stored = Mirror(reflecting: DetailValues()).children.compactMap(\.label)
        #expect(Set(stored).isSubset(of: TaskField.all.map(\.name)))
    }

    @Test("an option or key has its own word")
    func words() {
        let people = TaskField.all.filter { $0.option != nil || $0.key != nil || $0.change != nil }
        #expect(Set(people.map(\.word)).count == people.count)
        for field in people {
            if case .none = field.syntax { Issue.record("\(field.name) has no syntax for its option or key") }
            #expect(field.word.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") })
        }
    }

    @Test("the fields that can be changed are named in the order of the contract")
    func changeable() {
        #expect(TaskField.changeable.map(\.name) == Self.changeable)
        #expect(Set(TaskField.changeableInHelp.map(\.name)) == Set(Self.changeable))
    }

    @Test("the place of a value reads and writes what its property holds")
    func place() {
        var values = UnpackedTask(TaskSpecification(url: "http://h/"))
        FieldPlace(\.details.referer).set("r", in: &values)
        FieldPlace(\.task.output).set("o", in: &values)
        #expect(values.details.referer == "r" && values.task.output == "o")
        #expect(values.withMemory { FieldPlace(\.details.referer).get($0) } == "r")
        #expect(values.withMemory { FieldPlace(\.task.output).get($0) } == "o")
        #expect(values.packed.referer == "r" && values.packed.output == "o")
        #expect(values.packed.withMemory { FieldPlace(\.details.referer).get($0) } == "r")
    }

    @Test("a set of fields is listed in the order of the table")
    func sets() throws {
        var values = UnpackedTask(TaskSpecification(url: "http://h/"))
        values.details.referer = "r"
        values.details.metalink = true
        values.task.priority = .low
        #expect(values.packed.setFields.map(\.name) == ["metalink", "url", "referer", "priority"])
        values.details = .default
        #expect(values.packed.setFields.map(\.name) == ["url", "priority"])
    }

    @Test("the size of a task as JSON is estimated from above", arguments: ["form", "cookies", "headers", "mirrors"])
    func size(name: String) throws {
        let long = String(repeating: "x", count: 100_000)
        var task = TaskSpecification(kind: .upload, url: "http://h/")
        switch name {
        case "form": task.form = ["a=\(long)"]
        case "cookies": task.cookies = long
        case "headers": task.headers = ["A: \(long)"]
        default: task.mirrors = ["http://h/\(long)"]
        }
        #expect(try JSONEncoder().encode(task).count < task.estimatedSize)
    }
}
