import TaskFiles
import TaskModel
import Testing

@Suite("Input files")
struct InputFileTests {
    private func parse(_ text: String) throws(FileError) -> QueueFile {
        try InputFile.parse(
            Array(text.utf8), file: "f", baseDirectory: "/base", now: 0, utcOffset: { _ in 0 }, readFile: reading([:]))
    }

    @Test(
        "the kind of a file is told by its content",
        arguments: [
            ("", InputFile.Kind.urlList), ("# a\n", .urlList), ("http://h/\n", .urlList),
            ("\u{FEFF}\r\n# c\r\n  https://h/a=b\r\n  https://h/c\r\n", .urlList), ("example.org/x\n", .urlList),
            ("mailto:x", .urlList), ("http://h/\nname=value\n", .urlList),
            ("downloads:\n- http://h/", .queueFile), ("\u{FEFF}# c\n\ndowloads: []", .queueFile),
            ("---\nbatch: x", .queueFile), ("{downloads: []}", .queueFile), ("\"batch\": x", .queueFile),
            ("batch:\r\n", .queueFile), ("- http://h/\n", .queueFile), ("%YAML 1.1\n---\n", .queueFile),
            ("downloads:\n- url: http://h/\n  header: a=b\n  x=y\n", .queueFile),
            ("<?xml version=\"1.0\"?>\n<metalink>", .metalink), ("\n  <metalink/>", .metalink),
            ("http://h/\n  out=a\n", .aria2Input), ("# c\nhttp://h/\n\nhttp://i/\n\tdir=/x\n", .aria2Input),
            ("http://h/a\thttp://i/a\n", .aria2Input),
        ])
    func detect(text: String, kind: InputFile.Kind) {
        #expect(InputFile.detect(Array(text.utf8)) == kind)
    }

    @Test("a URL list and a queue file give the same kind of value")
    func parsed() throws {
        let list = try parse("http://h/a\n")
        #expect(list.batch == nil)
        #expect(list.entries.map(\.specification.url) == ["http://h/a"])
        let file = try parse("\u{FEFF}batch: b\nuploads: [{file: x, url: http://h/}]\n")
        #expect(file.batch == "b")
        #expect(file.entries.map(\.specification.file) == ["/base/x"])
    }

    @Test("kinds that are not read are refused by name")
    func refused() {
        #expect(
            throws: fault(1, 1, "is a Metalink or other XML file; this version reads URL lists and queue files")
        ) { try parse("<metalink/>") }
        #expect(
            throws: fault(
                1, 1,
                "is an input file of aria2, with options of its own; this version reads URL lists and queue files")
        ) { try parse("http://h/\n out=x\n") }
    }

    @Test("a fault keeps its place, whatever the kind")
    func faults() {
        #expect(throws: fault(1, 1, "`dowloads` is not a key here; did you mean `downloads`?")) {
            try parse("dowloads: []\n")
        }
        #expect(throws: fault(2, 1, "is not UTF-8 text; dld reads text files only")) {
            try InputFile.parse(
                Array("http://h/\n".utf8) + [0xC0], file: "f", baseDirectory: "/", now: 0, utcOffset: { _ in 0 },
                readFile: reading([:]))
        }
    }
}
