import ArgumentParser
import TaskModel
import Testing

@testable import dlctl

@Suite("Sets and ranges in URLs")
struct URLGlobTests {
    private func urls(_ text: String) throws -> [String] { try URLGlob(parsing: text).expanded.map(\.url) }

    @Test("sets and ranges are expanded as by curl")
    func expanded() throws {
        #expect(try urls("h/a") == ["h/a"])
        #expect(try urls("h/f[1-3]") == ["h/f1", "h/f2", "h/f3"])
        #expect(try urls("h/[008-12:2].x") == ["h/008.x", "h/010.x", "h/012.x"])
        #expect(try urls("h/[a-e:2]") == ["h/a", "h/c", "h/e"])
        #expect(try urls("{a,b,}.[1-2]") == ["a.1", "a.2", "b.1", "b.2", ".1", ".2"])
        #expect(try urls("http://[::1]:80/[0-1]") == ["http://[::1]:80/0", "http://[::1]:80/1"])
        #expect(try urls(#"h/\[1-3\]\{a\}"#) == ["h/[1-3]{a}"])
    }

    @Test(
        "what is none is refused with what is wrong",
        arguments: [
            ("h/{a", "{ has no }"), ("h/[1", "[ has no ]"), ("h/a}", "} has no beginning"),
            ("h/[3-1]", "is not a range"), ("h/[1-3:0]", "is not a range"), ("h/[a-3]", "is not a range"),
            ("h/[]", "is not a range"),
            ("h/{}", "is not a set"), ("h/{a,{b,c}}", "is not a set"), ("h/\\", "backslash"),
            ("h/[1-10001]", "more than 10000"), ("h/[1-101][1-100]", "more than 10000"),
            ("h/[0-999999999999999]", "more than 10000"), ("h/[1-9999999999999999]", "is not a range"),
        ])
    func refused(url: String, words: String) {
        #expect {
            try URLGlob(parsing: url)
        } throws: { error in
            (error as? Failure)?.status == .usage && (error as? Failure)?.message.contains(words) == true
        }
    }

    @Test("#1 in a name is the first value, and a number beyond the values is refused")
    func names() throws {
        let values = try #require(try URLGlob(parsing: "h/[1-2].{iso,sig}").expanded.last).values
        #expect(try URLGlob.name("f_#1.#2", values) == "f_2.sig")
        #expect(try URLGlob.name("#0#x#", values) == "#0#x#")
        let message = "--output: #3 has no value; the URL has sets and ranges up to #2"
        #expect(throws: Failure.usage(message, field: "--output")) { try URLGlob.name("#3", values) }
    }

    @Test("add takes them with --glob alone, and one URL's options for one URL alone")
    func add() throws {
        func tasks(_ words: String...) throws -> [String] {
            let command = try #require(try RootCommand.parseAsRoot(["add"] + words) as? Add)
            var input = InputText()
            return try command.tasks(command.resolve(&input)).map { $0.url + " " + ($0.output ?? "") }
        }
        #expect(try tasks("--glob", "-o", "x#1", "http://h/[1-2]") == ["http://h/1 x1", "http://h/2 x2"])
        #expect(try tasks("http://h/{1}") == ["http://h/{1} "])
        #expect(throws: Failure.self) { try tasks("--glob", "-o", "x", "http://h/[1-2]") }
        #expect(try tasks("--glob", "-o", "x", "http://h/[1-3:5]") == ["http://h/1 x"])
        #expect(throws: Failure.self) { try tasks("--glob", "--key", "k", "http://h/[1-2]") }
        #expect(throws: Failure.self) { try tasks("--glob", "http://h/[1-9999]", "http://h/{a,b}") }
        #expect(throws: (any Error).self) { try tasks("--glob", "--input", "f") }
    }
}
