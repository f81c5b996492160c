import TaskModel
import Testing

@Suite("Names of instances")
struct InstanceNameTests {
    @Test("letters, digits, '_', '-' and '.' make a name", arguments: ["a", "work", "Night-2.x_1", "0"])
    func good(name: String) throws {
        let instance = try InstanceName(name)
        #expect(instance.description == name && instance.directory == "dld-" + name)
        #expect(instance.configurationFile == name + ".yaml")
    }

    @Test(
        "what would lead elsewhere in a path or a unit's name is refused",
        arguments: [
            "", ".", "..", ".x", "-x", "a/b", "a b", "a@b", "a%i", "ä", "dld", "a\n", String(repeating: "x", count: 65),
        ])
    func bad(name: String) {
        #expect(throws: FieldError.self) { try InstanceName(name) }
    }
}
