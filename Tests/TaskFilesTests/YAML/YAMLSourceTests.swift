import TaskFiles
import Testing

@Suite("YAML texts")
struct YAMLSourceTests {
    @Test("a tab in the indentation is named as one")
    func tabs() {
        #expect(throws: fault(2, 1, "YAML does not allow a tab here; indent with spaces")) {
            try Configuration(parsing: "limits:\n\tactive-tasks: 3\n", file: "f")
        }
    }

    @Test(
        "what is not YAML is refused with its place",
        arguments: [
            ("log: {level: info", 2), ("a: b: c", 1), ("log: {}\n- x\n", 2), ("log: \"x\n", 2), ("%\n", 1),
            ("*x", 1), ("log: {}\n---\nlog: {}\n", 2), ("}", 1), ("\"\\uD800\": 1", 1), ("&a *a", 1),
        ])
    func notYAML(text: String, line: Int) {
        let error = #expect(throws: FileError.self) { try Configuration(parsing: text, file: "f") }
        #expect(error?.line == line, "\(error.map(String.init(describing:)) ?? "")")
    }

    @Test("a control character is refused with its place")
    func controlCharacters() {
        #expect(throws: fault(2, 6, "contains a control character; dld reads text files only")) {
            try Configuration(parsing: "tls: {}\nlog: \0{}\n", file: "f")
        }
    }

    @Test("columns count characters, whatever they are made of")
    func columns() {
        // The letter é of two scalars, and a family emoji.
        #expect(throws: fault(1, 28, "this entry is the same task as the one at line 1; give it a key of its own")) {
            try queue("downloads: ['http://h/e\u{301}👨‍👩‍👧', 'http://h/e\u{301}👨‍👩‍👧']")
        }
    }

    @Test("an alias stands for what its anchor holds")
    func alias() throws {
        let text = "downloads: {roots: &roots [/a, /b]}\nuploads: {roots: *roots}\nlog: {level: info} # *not* one\n"
        #expect(try Configuration(parsing: text, file: "f").uploads.roots == ["/a", "/b"])
    }

    @Test("aliases of aliases end at once", arguments: ["downloads: [*z]", "downloads: *z", "? *z\n: 1", "*z : 1"])
    func bomb(use: String) {
        var lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        for level in 1..<60 {
            let aliases = Array(repeating: "*a\(level - 1)", count: 9).joined(separator: ", ")
            lines.append("a\(level): &a\(level) [\(aliases)]")
        }
        lines.append("z: &z [*a59, *a59]")
        lines.append(use)
        #expect(throws: FileError.self) { try queue(lines.joined(separator: "\n")) }
    }

    @Test("aliases that repeat values past reason are refused")
    func manyVisits() {
        let headers = Array(repeating: "'A: b'", count: 400).joined(separator: ", ")
        let entries = (0..<400).map { "- {url: 'http://h/\($0)', header: *h}" }.joined(separator: "\n")
        let error = #expect(throws: FileError.self) {
            try queue("defaults:\n  header: &h [\(headers)]\ndownloads:\n\(entries)\n")
        }
        #expect(error?.message == "the aliases above repeat too many values; use fewer")
    }

    @Test("a key is a word", arguments: ["? [a]\n: b", "{[a]: b}", "{{a: b}: c}", "a: &a b\n*a : c"])
    func keys(text: String) {
        #expect(throws: FileError.self) { try Configuration(parsing: text, file: "f") }
    }

    @Test("nesting without end is refused", arguments: ["[", "{", "- ", "{a: ", "? ", "a: [", "&a [*a, "])
    func nesting(opening: String) {
        let text = String(repeating: opening, count: 100_000)
        #expect(throws: FileError.self) { try Configuration(parsing: text, file: "f") }
        #expect(throws: FileError.self) { try queue("downloads: " + text) }
    }

    @Test("garbage is refused and ends nothing", arguments: 0..<200)
    func garbage(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
        func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
        // Bytes with a meaning in YAML, so that deep parts of the parser are reached.
        let alphabet = Array("{}[],:-?&*!|>'\"%@#~ \n\t\\ab\u{E9}\u{2028}\r\0".utf8)
        let bytes = (0..<300).map { _ in alphabet[Int(next() % UInt64(alphabet.count))] }
        let isSpared = (try? FileText.decode(bytes, file: "f")).flatMap { try? Configuration(parsing: $0, file: "f") }
        #expect(isSpared == nil || isSpared == Configuration())
        let text = String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self)
        #expect((try? queue("downloads:\n - " + text))?.entries.contains { $0.line < 2 } != true)
    }
}
