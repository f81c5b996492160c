import Foundation
import TestSupport
import Testing

@testable import dlctl

@Suite("The cursor of a hook")
struct HookCursorTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func cursor() throws -> HookCursor {
        try HookCursor(name: "c", directory: place.file("state/hooks")) { _ in
            Issue.record("there is nothing to wait for")
        }
    }

    @Test("the position and the done events are there again, with what the shell wrote")
    func reopened() throws {
        do {
            let cursor = try cursor()
            #expect(cursor.position == nil)
            try cursor.set(position: 5, journal: "j")
            try cursor.add(7, isWritten: false, position: 5)
            let file = try FileHandle(forUpdating: URL(filePath: cursor.path))
            try file.seekToEnd()
            try file.write(contentsOf: Data("done 9\n".utf8))
            try cursor.add(9, isWritten: true, position: 5)
        }
        let again = try cursor()
        #expect(again.position == 5 && again.done == [7, 9])
        try again.set(position: 8, journal: "j")
        #expect(again.done == [9])
        #expect(try String(contentsOfFile: again.path, encoding: .utf8) == "position 8\njournal j\ndone 9\n")
        try again.continueIn("l")
        #expect(again.journal == "l" && again.done == [9])
        try again.add(12, isWritten: false, position: 8)
        try again.set(position: 8, journal: "m", common: 10)
        #expect(again.done == [9], "later events of the earlier journal were others")
        try again.set(position: 2, journal: "k")
        #expect(again.done.isEmpty, "the numbers of another journal say nothing about this one")
    }

    @Test("the position moves on with the events that are done, and is there again without a clean end")
    func movingPosition() throws {
        do {
            let cursor = try cursor()
            try cursor.set(position: 5, journal: "j")
            try cursor.add(9, isWritten: false, position: 6)
            #expect(cursor.position == 6 && cursor.done == [9])
            try cursor.add(7, isWritten: false, position: 9)
            #expect(cursor.position == 9 && cursor.done.isEmpty)
        }
        let again = try cursor()
        #expect(again.position == 9 && again.done.isEmpty && again.journal == "j")
    }

    @Test(
        "half a last line is passed over, and a file that is no cursor is an error",
        arguments: ["done 19", "done", "do"])
    func damaged(ending: String) throws {
        try FileManager.default.createDirectory(atPath: place.file("state/hooks"), withIntermediateDirectories: true)
        let path = place.file("state/hooks/c")
        try Data("position 5\ndone 7\n\(ending)".utf8).write(to: URL(filePath: path))
        do {
            let cursor = try cursor()
            #expect(cursor.position == 5 && cursor.done == [7])
        }
        try Data("something else\n".utf8).write(to: URL(filePath: path))
        #expect(throws: Failure.self) { _ = try cursor() }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "something else\n")
    }

    @Test("one process uses a cursor at a time")
    func exclusive() throws {
        let first = try cursor()
        #expect(throws: Failure.self) { _ = try cursor() }
        withExtendedLifetime(first) {}
    }

    @Test(
        "a name cannot lead out of the directory",
        arguments: ["", ".", "..", "a/b", ".hidden", "a b", "ä", String(repeating: "a", count: 65)])
    func names(name: String) {
        #expect(!HookCursor.isName(name))
        #expect(HookCursor.isName("a-B_9.x"))
    }
}
