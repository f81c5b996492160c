import TaskFiles
import TaskModel
import Testing

@Suite("Watched directories")
struct WatchTests {
    private func watches(_ text: String, files: [String: String] = [:]) throws(FileError) -> [Watch] {
        try Configuration(parsing: text, file: "/etc/dld/f", readFile: reading(files)).watch
    }

    private func fill(_ defaults: String, _ text: String, now: Milliseconds = 0) throws -> [TaskSpecification] {
        let watch = try #require(
            try watches("watch: [{directory: /d, defaults: \(defaults)}]", files: ["/etc/dld/pw": "secret\n"]).first)
        var file = try queue(text)
        try watch.defaults.fill(&file, named: "f", now: now) { _ in 3_600 }
        return file.entries.map(\.specification)
    }

    @Test("each has a directory, and may have defaults")
    func parsed() throws {
        let parsed = try watches("watch:\n- directory: /srv//drop/\n- {directory: /b, defaults: {}}\n")
        #expect(parsed == [Watch(directory: "/srv/drop"), Watch(directory: "/b")])
        #expect(try watches("watch: []").isEmpty && watches("watch:\n").isEmpty)
    }

    @Test("an entry keeps its own and takes the rest, each kind what is meant for it")
    func filled() throws {
        let tasks = try fill(
            "{directory: isos, method: POST, user: u, password-file: pw, limit: 1K, connections: 2}",
            "downloads: [{url: 'http://h/a', directory: own}, http://h/b]\nuploads: [{url: 'http://h/c', file: /c}]\n")
        #expect(tasks.map(\.directory) == ["own", "isos", nil])
        #expect(tasks.map(\.method) == [nil, nil, "POST"])
        #expect(tasks.map(\.password) == ["secret", "secret", "secret"])
        #expect(tasks.map(\.limit) == [1_024, 1_024, 1_024])
        #expect(tasks.map(\.connections) == [.exactly(2), .exactly(2), nil])
    }

    @Test("a time to start counts from each file's moment, by local clocks")
    func startAt() throws {
        #expect(try fill("{start-at: +1h}", "downloads: [http://h/a]", now: 7).map(\.startAt) == [3_600_007])
        #expect(try fill("{start-at: 2024-01-01}", "downloads: [http://h/a]").map(\.startAt) == [1_704_063_600_000])
    }

    @Test("an entry that cannot be had with the defaults is refused where it stands")
    func contradiction() throws {
        #expect(
            throws: fault(
                1, 13,
                "with the defaults of this directory, \"checksumURL\": needs the file's URL, which only the Metalink "
                    + "contains; give a checksum")
        ) {
            try fill("{metalink: true}", "downloads: [{url: 'http://h/a', checksum-url: 'http://h/s'}]")
        }
    }

    @Test(
        "what is wrong is told with its place",
        arguments: [
            ("watch: [{}]", 9, "this entry has no \"directory\""),
            ("watch: [{directory: a}]", 21, "\"directory\" is a relative path; give an absolute path"),
            ("watch: [{directory: /a}, {directory: /a/}]", 38, "\"directory\" is already watched"),
            ("watch: [{directory: /a, default: {}}]", 25, "\"default\" is not a key here; did you mean \"defaults\"?"),
            ("watch: /a", 8, "\"watch\" must be a list of directories, such as [{directory: /srv/drop}]"),
            (
                "watch: [{directory: /a, defaults: {url: 'http://h/'}}]", 36,
                "\"url\" applies to a single entry and cannot be a default"
            ),
            (
                "watch: [{directory: /a, defaults: {limit: fast}}]", 43,
                "\"limit\" must be a rate of at least 1 byte per second, such as 500K, 2M or 1.5G"
            ),
            ("watch: [{directory: /a, defaults: {header: x}}]", 44, "\"header\": is not of the form \"Name: value\""),
            (
                "watch: [{directory: /a, defaults: {start-at: x}}]", 46,
                "\"start-at\" must be a time such as 2030-01-31T22:00:00Z, 22:00 or +2h"
            ),
            (
                "watch: [{directory: /a, defaults: {user: u, password-file: pw}}]", 60,
                "\"password-file\": cannot open /etc/dld/pw"
            ),
        ])
    func faults(text: String, column: Int, message: String) {
        #expect(throws: FileError(file: "/etc/dld/f", line: 1, column: column, message: message)) { try watches(text) }
    }

    @Test("their number is bounded")
    func bounded() {
        let many = (0...Configuration.Bound.watches).map { "{directory: /\($0)}" }.joined(separator: ", ")
        #expect(throws: FileError.self) { try watches("watch: [\(many)]") }
    }
}
