import FoundationEssentials
import Testing

@testable import TaskModel

@Suite("The box of rarely used values")
struct DetailValuesTests {
    /// A task with a value in every field of its JSON.
    private static func full() throws -> TaskSpecification {
        try JSONDecoder().decode(TaskSpecification.self, from: Data(TaskSpecificationCodableTests.full.utf8))
    }

    private static let rareFields = TaskFieldSet.rare.intersection(.ofJSON).map(\.name)

    @Test("a single value that differs from its default is found", arguments: rareFields)
    func singleField(name: String) throws {
        let field = try #require(TaskField.named(name))
        let full = try Self.full()
        var values = UnpackedTask(TaskSpecification(url: ""))
        full.withMemory { field.operations.copy($0, &values) }
        let task = values.packed
        #expect(task.setFields.map(\.name) == [name])
        #expect(task.details == Details.holding(values.details))
        #expect(task.details != full.details)
        field.reset(in: &values)
        #expect(values.packed.isPlain)
    }

    @Test("boxes with a different value are not equal", arguments: rareFields)
    func difference(name: String) throws {
        let field = try #require(TaskField.named(name))
        let full = try Self.full()
        var values = UnpackedTask(full)
        #expect(values.packed.details === full.details)
        field.reset(in: &values)
        #expect(values.packed.details != full.details)
        #expect(full.setFields.subtracting(values.packed.setFields).map(\.name) == [name])
    }

    @Test("the daemon's own values are found")
    func daemonFields() {
        var task = TaskSpecification(url: "")
        task.groups = [7]
        task.passedSource = "s"
        #expect(task.setFields.map(\.name) == ["groups", "passedSource"])
    }

    @Test("a default value is recognized whatever its memory")
    func emptyValues() {
        var task = TaskSpecification(url: "http://h/")
        task.headers = ["A: b"]
        task.headers.removeAll(keepingCapacity: true)
        #expect(task.isPlain && task.details == nil)
        task.userAgent = ""
        #expect(task.setFields.map(\.name) == ["url", "userAgent"])
    }

    @Test("tasks with equal values share a box, and a change makes a new one")
    func sharing() {
        var (one, other) = (TaskSpecification(url: "http://h/1"), TaskSpecification(url: "http://h/2"))
        for _ in 1...2 {
            one.referer = "http://referer.example/"
            swap(&one, &other)
        }
        #expect(one.details !== other.details && one.hasRareValues(of: other))
        other.shareRareValues(with: one)
        #expect(one.details === other.details && other.url == "http://h/2")
        var values = UnpackedTask(other)
        values.task.output = "o"
        #expect(values.packed.details === one.details)
        other.paused = true
        #expect(one.paused == false && !one.hasRareValues(of: other))
        other.shareRareValues(with: one)
        #expect(other.paused)
    }
}
