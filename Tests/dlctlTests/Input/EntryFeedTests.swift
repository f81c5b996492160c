import TaskFiles
import TaskModel
import Testing

@testable import dlctl

@Suite("The entries of a list of tasks")
struct EntryFeedTests {
    @Test("a line that repeats an earlier one is named with both lines, and twenty are enough")
    func repeated() throws {
        func repeated(_ text: String) throws -> (count: Int, notes: [FileNote]) {
            let feed = try EntryFeed(.list(URLList.Reader(Array(text.utf8), file: "l"))) { _ in }
            while try feed.nextPart() != nil {}
            return feed.repeated(in: "l")
        }
        #expect(try repeated("http://h/a\nhttp://h/b\n").count == 0)
        let two = try repeated("http://h/a\nhttp://h/b\nhttp://h/a\n")
        #expect(two.count == 1)
        #expect(
            two.notes.map(\.description)
                == ["l:3:1: warning: this is the same task as the one at line 1; it is queued once"])
        let many = try repeated(String(repeating: "http://h/a\n", count: 50))
        #expect(many.count == 49 && many.notes.count == 20)
    }
}
