import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import dlctl

@Suite("Uploads on the command line")
struct UploadTests {
    private func urls(_ arguments: String...) throws -> [String] {
        let command = try #require(try RootCommand.parseAsRoot(ArgumentRuns.join(["upload"] + arguments)) as? Upload)
        return try command.urls(of: command.files)
    }

    @Test("files go beneath a URL that ends in a slash, each under its own name")
    func beneath() throws {
        #expect(
            try urls("d/a.tar", "b c.tar", "https://h/in/") == ["https://h/in/a.tar", "https://h/in/b%20c.tar"])
        #expect(try urls("a.tar", "sftp://h/in/") == ["sftp://h/in/a.tar"])
        #expect(try urls("a.tar", "https://h/in") == ["https://h/in"])
        #expect(try urls("a.tar", "https://h/in?x=1/") == ["https://h/in?x=1/"])
    }

    @Test("the URLs of twenty thousand files take no longer than a moment")
    func many() throws {
        let files = (0..<20_000).map { "d/f\($0)" }
        let arguments = ArgumentRuns.join(["upload"] + files + ["https://h/in/"])
        let command = try #require(try RootCommand.parseAsRoot(arguments) as? Upload)
        let begun = ContinuousClock.now
        let urls = try command.urls(of: files)
        #expect(urls.count == 20_000 && urls.last == "https://h/in/f19999")
        // It took minutes when the arguments were split once for each file.
        #expect(begun.duration(to: .now) < .seconds(20))
    }

    @Test("a slash at the end of a directory changes neither the files nor their URLs")
    func tree() throws {
        let place = try TemporaryDirectory()
        try Data().write(to: URL(filePath: place.file("a")))
        let context = Context(DaemonChoice(), json: false, isQuiet: true)
        for end in ["", "/", "//"] {
            let words = ["upload", "-r", place.path + end, "https://h/in/"]
            let command = try #require(try RootCommand.parseAsRoot(words) as? Upload)
            let tree = try command.tree(context)
            #expect(tree.files == [place.file("a")] && tree.urls == ["https://h/in/a"])
        }
    }

    @Test("a form of one file goes to the URL as it is, and forms of several files beneath it")
    func forms() throws {
        #expect(try urls("--form", "a=b", "a.tar", "https://h/in/") == ["https://h/in/"])
        #expect(try urls("--file-field", "f", "a.tar", "https://h/in/?x=1") == ["https://h/in/?x=1"])
        #expect(try urls("--form", "a=b", "a", "b", "https://h/in/") == ["https://h/in/a", "https://h/in/b"])
    }

    @Test(
        "where a file would go is said, or refused with what to do",
        arguments: [
            (["a", "b", "https://h/in"], "URL that ends in /"), (["a", "https://h/in/?x=1"], "appended to a query"),
            (["a", "b", "https://h/in/?x=1"], "appended to a query"), (["d/a", "e/a", "https://h/in/"], "d/a and e/a"),
            (["a", "a", "https://h/in/"], "a and a"), (["-", "https://h/in/"], "standard input has no name"),
        ])
    func refused(arguments: [String], words: String) throws {
        let command = try #require(try RootCommand.parseAsRoot(["upload"] + arguments) as? Upload)
        var failure: Failure?
        do throws(Failure) {
            _ = try command.urls(of: command.files)
        } catch {
            failure = error
        }
        #expect(failure?.status == .usage && failure?.message.contains(words) == true)
    }

    @Test(
        "a file and a URL are needed, and a key is for one file",
        arguments: [
            ["f"], [], ["--key", "k", "a", "b", "u/"], ["-", "a", "u/"], ["-r", "a", "b", "u/"], ["-r", "-", "u/"],
            ["-r", "--key", "k", "a", "u/"], ["--exec", "true", "a", "u/"], ["--wait", "--exec", "", "a", "u/"],
        ])
    func wrongUses(arguments: [String]) {
        #expect(throws: (any Error).self) { try RootCommand.parseAsRoot(["upload"] + arguments) }
    }

    @Test("a complaint about one of several files names that file")
    func names() {
        let names = FieldNames(urls: ["https://h/a", "https://h/b"], files: ["a", "b"])
        #expect(names.translate(field: "tasks[1].file", message: "is not yours").message == "b: is not yours")
        #expect(FieldNames(files: ["a"]).translate(field: "file", message: "is empty").message == "a: is empty")
    }
}
