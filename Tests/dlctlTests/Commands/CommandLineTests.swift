import ArgumentParser
import ControlClient
import ControlProtocol
import FoundationEssentials
import TaskFiles
import TaskModel
import TestSupport
import Testing

@testable import dlctl

@Suite struct CommandLineTests {
    private func parse<Command>(_ arguments: String..., as type: Command.Type) throws -> Command {
        try #require(try RootCommand.parseAsRoot(arguments) as? Command)
    }

    /// Stands for a daemon that no call needs.
    private static func unconnected() throws(ClientError) -> ControlClient { throw .noDaemon(paths: [], errno: 0) }

    @Test("ids may be ranges, which are limited")
    func ranges() throws {
        let command = try parse("show", "1", "3-5", "9-9", as: Show.self)
        #expect(command.arguments.ids == [1, 3, 4, 5, 9].map { TaskID($0) } && command.arguments.single == nil)
        #expect(try parse("show", "7", as: Show.self).arguments.single == TaskID(7))
        #expect(try parse("show", "1-10000", as: Show.self).arguments.ids.count == 10_000)
        for bad in ["5-3", "3-", "-", "1-10001", "0-9223372036854775807", "1-2-3"] {
            #expect(throws: (any Error).self) { try RootCommand.parseAsRoot(["show", "1", bad]) }
        }
    }

    @Test("--quiet and --verbose may stand before or after the command")
    func quiet() throws {
        #expect(try parse("-q", "list", as: List.self).outer.first?.quiet == true)
        #expect(try parse("pause", "1", "-v", as: Pause.self).global.verbose)
    }

    @Test("--socket and --json may stand before or after the command")
    func globalOptions() throws {
        let before = try parse("--socket", "/s", "--json", "list", as: List.self)
        #expect(before.outer.first?.socket == "/s")
        #expect(before.outer.first?.json == true)
        let after = try parse("list", "--json", "--socket=/s", as: List.self)
        #expect(after.global.socket == "/s")
        #expect(after.global.json)
    }

    @Test("list takes states as words, and a descending field")
    func listWords() throws {
        let command = try parse("list", "failed", "--sort", "-bytesTotal", "waiting", as: List.self)
        #expect(command.words == ["failed", "waiting"])
        #expect(command.sort == "-bytesTotal")
        let message = { (error: any Error) in RootCommand.message(for: error) }
        #expect { try RootCommand.parseAsRoot(["list", "faild"]) } throws: {
            message($0).contains("did you mean failed?")
        }
        #expect { try RootCommand.parseAsRoot(["list", "7"]) } throws: { message($0).contains("dlctl show 7") }
    }

    @Test("... and before, between and after the words of queue apply")
    func queueOptions() throws {
        let command = try parse("--json", "queue", "--socket", "/q", "apply", "f.yaml", as: QueueApply.self)
        #expect(command.root.global.json)
        #expect(command.queue.global.socket == "/q")
    }

    @Test(
        "wrong uses are refused",
        arguments: [
            ["add"], ["add", "-o", "x", "http://a/1", "http://a/2"], ["add", "--key", "k", "--input", "f"],
            ["add", "--input", "f", "http://a/"], ["pause"], ["pause", "1", "--all"], ["pause", "abc"],
            ["pause", "--", "-1"],
            ["pause", "99999999999999999999"], ["pause", "+1"], ["list", "--state", "odd"], ["list", "--limit", "0"],
            ["list", "odd"], ["list", "7"], ["list", "--queue", "--sort", "id"], ["list", "--queue", "failed"],
            ["list", "--queue", "--after", "7"], ["wait", "--batch", ""], ["wait", "1", "--all"],
            ["wait", "1", "--batch", "b"], ["watch", "--batch", ""], ["watch", "1", "--batch", "b"], ["watch", "x"],
            ["top", "--batch", ""], ["top", "--search", ""], ["top", "1"],
            ["list", "--search", String(repeating: "q", count: 1_025)],
            ["wait"], ["wait", "1", "--timeout", "nan"], ["wait", "1", "--timeout", "1e3"],
            ["wait", "1", "--timeout=-1"],
            ["list", "--batch", ""], ["cancel", "--batch", ""],
            ["add", "--max-size", "12Q", "http://a/"], ["add", "--priority", "urgent", "http://a/"], ["upload", "f"],
            ["add", "--connections", "17", "http://a/"], ["add", "--connections", "all", "http://a/"],
            ["add", "--mirror", "http://b/1", "http://a/1", "http://a/2"],
            ["add", "--mirror", "http://b/1", "--input", "f"],
            ["set"], ["set", "7"], ["set", "--limit", "1M"], ["set", "7", "--all", "--limit", "1M"],
            ["set", "7", "8", "--url", "http://a/"], ["set", "--all", "--output", "o"],
            ["set", "7", "8", "--checksum", "md5:0"], ["set", "--batch", "b", "--mirror", "http://b/1"],
            ["set", "7", "--mirror", "none", "--mirror", "http://b/1"],
            ["set", "x", "--url", "u"],
            ["set", "7", "--limit", "0.5"], ["set", "7", "--limit", "fast"], ["set", "7", "--connections", "17"],
            ["set", "7", "--priority", "none"], ["set", "7", "--header", "none", "--header", "A: b"],
            ["add", "--limit", "much", "http://a/"], ["add", "--limit", "0.0001K", "http://a/"],
            ["add", "--checksum", "md5:0", "--checksum-url", "http://a/s", "http://a/"],
            ["add", "--metalink"], ["add", "--metalink", "--input", "f"], ["add", "--form", "a=b", "http://a/"],
            ["upload", "--method", "GET", "f", "u"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: (any Error).self) { try RootCommand.parseAsRoot(arguments) }
    }

    @Test("mirrors may be repeated, and take one URL each")
    func mirrors() throws {
        let arguments = ["add", "--mirror", "http://b/1", "--mirror=http://c/1", "--connections", "4", "http://a/1"]
        let command = try #require(try RootCommand.parseAsRoot(ArgumentRuns.join(arguments)) as? Add)
        var input = InputText()
        #expect(try command.resolve(&input).mirrors == ["http://b/1", "http://c/1"])
        #expect(command.urls == ["http://a/1"])
        #expect(try command.resolve(&input).connections == .exactly(4))
        let automatic = try parse("add", "--connections", "auto", "http://a/1", as: Add.self)
        #expect(try automatic.resolve(&input).connections == .auto)
    }

    @Test("several Metalinks may be named at once, and none is when nothing is said")
    func metalink() throws {
        let command = try parse("add", "--metalink", "http://a/1.meta4", "http://a/2.meta4", as: Add.self)
        var input = InputText()
        #expect(try command.resolve(&input).metalink && command.urls == ["http://a/1.meta4", "http://a/2.meta4"])
        #expect(try parse("add", "http://a/1.meta4", as: Add.self).resolve(&input).metalink == false)
    }

    @Test("set names what changes, and none takes back")
    func set() throws {
        var input = InputText()
        let all = try parse(
            "set", "7", "--url", "http://a/2", "--priority", "high", "--limit", "500K", "--connections", "auto",
            "--header", "A: b", "--header=C: d", "--start-at", "2030-01-31T22:00Z", "-o", "n", as: SetCommand.self)
        #expect(all.selection.arguments.ids == [TaskID(7)])
        var expected = TaskChanges()
        expected.url = "http://a/2"
        expected.priority = .set(.high)
        expected.limit = .set(500 << 10)
        expected.connections = .set(.auto)
        expected.headers = .set(["A: b", "C: d"])
        expected.startAt = .set(1_896_127_200_000)
        expected.output = .set("n")
        #expect(try all.changes(&input) == expected)
        let none = try parse(
            "set", "7", "--limit", "none", "--connections", "none", "--header", "none", "--start-at", "none",
            "--output", "", as: SetCommand.self)
        expected = TaskChanges()
        expected.limit = .takeBack
        expected.connections = .takeBack
        expected.headers = .takeBack
        expected.startAt = .takeBack
        expected.output = .takeBack
        #expect(try none.changes(&input) == expected)
        #expect(throws: Failure.self) {
            try parse("set", "7", "--start-at", "soon", as: SetCommand.self).changes(&input)
        }
    }

    @Test("set takes mirrors, a digest, a login and a directory, and none takes each of them back")
    func setOfSource() throws {
        var input = InputText()
        let directory = try TemporaryDirectory()
        let all = try parse(
            "set", "7", "--mirror", "http://b/1", "--mirror=http://c/1", "--checksum", "md5:0", "--user", "me",
            "--password-file", try directory.write("geheim\n", to: "password"), "-d", "isos", as: SetCommand.self)
        var expected = TaskChanges()
        expected.mirrors = .set(["http://b/1", "http://c/1"])
        expected.checksum = .set("md5:0")
        expected.user = .set("me")
        expected.password = .set("geheim")
        expected.directory = .set("isos")
        #expect(try all.changes(&input) == expected)
        let none = try parse(
            "set", "7", "--mirror", "none", "--checksum", "none", "--user", "none", "--password-file", "none",
            "--directory", "none", as: SetCommand.self)
        expected.mirrors = .takeBack
        expected.checksum = .takeBack
        expected.user = .takeBack
        expected.password = .takeBack
        expected.directory = .takeBack
        #expect(try none.changes(&input) == expected)
    }

    @Test("set takes several ids and a filter as pause does, for what several tasks can have")
    func setOfSeveral() throws {
        let several = try parse("set", "7", "8", "--limit", "1M", "9", as: SetCommand.self)
        #expect(several.selection.arguments.ids == [TaskID(7), TaskID(8), TaskID(9)])
        let filtered = try parse(
            "set", "--batch", "b", "--state", "failed", "--search", "iso", "--directory", "isos", "--mirror", "none",
            as: SetCommand.self)
        #expect(try filtered.selection.calls(Self.unconnected).first?.filter?.batch == "b")
        let arguments = ["set"] + (1...2_000).map(String.init) + ["--priority", "low"]
        let joined = ArgumentRuns.join(arguments)
        #expect(joined.count == 4)
        let many = try #require(try RootCommand.parseAsRoot(joined) as? SetCommand)
        var input = InputText()
        #expect(try many.selection.arguments.ids.count == 2_000 && many.changes(&input).priority == .set(.low))
    }

    @Test("beside ids and ranges of ids, the batch of set is the new one", arguments: ["7", "7-9", "1 3-5"])
    func newBatch(ids: String) throws {
        let words = ["set"] + ids.split(separator: " ").map(String.init) + ["--batch", "nightly"]
        let command = try #require(try RootCommand.parseAsRoot(ArgumentRuns.join(words)) as? SetCommand)
        var input = InputText()
        #expect(try command.changes(&input).batch == .set("nightly"))
    }

    @Test("a limit is a rate")
    func limit() throws {
        let command = try parse("add", "--limit", "1.5M", "http://a/1", as: Add.self)
        var input = InputText()
        #expect(try command.transfer.resolve(&input).limit == 3 << 19)
    }

    @Test("a timeout may have a fraction")
    func timeout() throws {
        #expect(try parse("wait", "1", "--timeout", "0.25", as: Wait.self).global.timeout?.seconds == 0.25)
    }

    @Test("ids are told once each, in calls that fit into a line")
    func selection() throws {
        let ids = (1...25_000).map(String.init) + ["7"]
        let command = try #require(try RootCommand.parseAsRoot(ArgumentRuns.join(["pause"] + ids)) as? Pause)
        let calls = try command.selection.calls(Self.unconnected)
        #expect(calls.map { $0.ids?.count } == [10_000, 10_000, 5_000])
        #expect(calls.allSatisfy { $0.filter == nil })
    }

    @Test("--all is a filter without conditions")
    func all() throws {
        let command = try parse("remove", "--all", "--delete-file", as: Remove.self)
        let call = try #require(command.selection.calls(deleteFile: true, Self.unconnected).first)
        #expect(call.filter == TaskFilter())
        #expect(call.ids == nil)
        #expect(call.deleteFile == true)
    }

    @Test("a refusal reads as one sentence about the task")
    func sentences() {
        func sentence(_ message: String) -> String {
            Context.sentence(.init(id: TaskID(9), code: .invalid, message: message))
        }
        #expect(sentence("is completed; only …") == "task 9 is completed; only …")
        #expect(sentence("no task has the id 9") == "no task has the id 9")
        #expect(sentence("cannot be done 99 times") == "task 9: cannot be done 99 times")
    }
}

@Suite struct ArgumentRunsTests {
    @Test("rows of ids or URLs become one argument, and come apart again")
    func rows() {
        let joined = ArgumentRuns.join(["--socket", "s", "wait", "1", "2", "--timeout", "3", "4", "5", "--json", "6"])
        #expect(joined == ["--socket", "s", "wait", "1\u{0}2", "--timeout", "3", "4\u{0}5", "--json", "6"])
        #expect(ArgumentRuns.split("1\u{0}\u{0}2") == ["1", "", "2"])
        #expect(ArgumentRuns.split("") == [""])
    }

    @Test("the arguments of other commands stay as they are")
    func others() {
        for arguments in [["move", "1", "2"], ["rpc", "m", "{}"], ["queue", "apply", "f"], ["--json"], []] {
            #expect(ArgumentRuns.join(arguments) == arguments)
        }
    }

    @Test("a word in a row that is no id is named alone")
    func fault() {
        do {
            _ = try RootCommand.parseAsRoot(ArgumentRuns.join(["wait", "1", "abc", "2"]))
            Issue.record("was accepted")
        } catch {
            #expect(RootCommand.message(for: error).contains("\"abc\""))
        }
    }
}

@Suite struct TransferOptionsTests {
    @Test("an upload says its method only where it is said, and reads the fields of its form from files too")
    func upload() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("b=2\r\n\nc=3=4\n", to: "fields")
        let arguments = ["upload", "--form", "a=1", "--form", "@\(file)", "--file-field", "image", "f", "http://a/"]
        let command = try #require(try RootCommand.parseAsRoot(arguments) as? Upload)
        var input = InputText()
        let task = try command.resolve(&input)
        #expect(task.kind == .upload && task.method == nil && task.fileField == "image")
        #expect(task.form == ["a=1", "b=2", "c=3=4"])
        let put = try #require(try RootCommand.parseAsRoot(["upload", "--method", "put", "f", "u"]) as? Upload)
        #expect(try put.resolve(&input).method == "PUT")
        let missing = ["upload", "--form", "@\(directory.file("none"))", "f", "http://a/"]
        let unreadable = try #require(try RootCommand.parseAsRoot(missing) as? Upload)
        #expect(throws: Failure.self) { try unreadable.resolve(&input) }
    }

    @Test("cookies are read from their file")
    func cookies() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("a jar", to: "jar")
        let command = try #require(try RootCommand.parseAsRoot(["add", "--cookies", file, "http://a/"]) as? Add)
        var input = InputText()
        #expect(try command.transfer.resolve(&input).cookies == "a jar")
    }

    @Test("none says no limit wherever a rate is given, and 0 is no rate")
    func noRate() throws {
        let text = "none"
        for zero in ["0", "0K", "0.1"] {
            for words in [["set", "1", "--limit"], ["limit", "--download"], ["add", "http://a/", "--limit"]] {
                #expect(throws: (any Error).self) { try RootCommand.parseAsRoot(words + [zero]) }
            }
        }
        let set = try #require(try RootCommand.parseAsRoot(["set", "1", "--limit", text]) as? SetCommand)
        var input = InputText()
        #expect(try set.changes(&input).limit == .takeBack)
        let limit = try #require(try RootCommand.parseAsRoot(["limit", "--download", text]) as? LimitCommand)
        #expect(limit.download?.rate == .unlimited)
        let add = try #require(try RootCommand.parseAsRoot(["add", "--limit", text, "http://a/"]) as? Add)
        #expect(try add.transfer.resolve(&input).limit == nil)
    }

    @Test("a password needs a user")
    func passwordAlone() throws {
        let command = try #require(try RootCommand.parseAsRoot(["add", "--password-file", "/f", "http://a/"]) as? Add)
        var input = InputText()
        #expect(throws: Failure.self) { try command.transfer.resolve(&input) }
    }
}

@Suite struct QueueSubmissionTests {
    private func parts(
        _ tasks: [TaskSpecification], bytes: Int = EntryFeed.Limit.bytes, count: Int = 1000
    ) throws -> [Range<Int>] {
        let entries = tasks.map { QueueEntry($0, line: 1, column: 1) }
        let feed = try EntryFeed(.file(QueueFile(entries: entries))) { _ in }
        var parts: [Range<Int>] = []
        while let part = try feed.nextPart(bytes: bytes, count: count) { parts.append(part) }
        #expect(feed.starts == parts.map(\.lowerBound))
        return parts
    }

    @Test("entries are split by count and by size, and every one is in exactly one call")
    func chunks() throws {
        let small = Array(repeating: TaskSpecification(url: "http://a/"), count: 2500)
        #expect(try parts(small) == [0..<1000, 1000..<2000, 2000..<2500])
        var large = TaskSpecification(url: "http://a/")
        large.caCertificates = String(repeating: "x", count: 300)
        let three = [large, large, large]
        #expect(try parts(three, bytes: 2100) == [0..<2, 2..<3])
        #expect(try parts(three, bytes: 1) == [0..<1, 1..<2, 2..<3])
        #expect(try parts([], bytes: 1, count: 1) == [])
    }

    @Test("a list is read as far as it is asked for, and says where it is wrong when that is reached")
    func feed() throws {
        let lines = (1...2500).map { "http://h/\($0)" } + ["file:///etc/passwd", "http://h/last", "nonsense"]
        let reader = URLList.Reader(Array(lines.joined(separator: "\n").utf8), file: "f")
        let feed = try EntryFeed(.list(reader)) { $0.specification.directory = "d" }
        #expect(try feed.nextPart() == 0..<1000)
        #expect(try feed.hasMore())
        #expect(feed.entries.count == 1001)
        #expect(feed.next()?.last?.url == "http://h/2000")
        #expect(feed.failure == nil)
        #expect(feed.next() == nil)
        #expect(feed.failure?.message.hasPrefix("f:2501:1: \"url\"") == true)
        #expect(feed.failure?.others.map { String($0.prefix { $0 != " " }) } == ["f:2503:1:"])
        #expect(feed.entries.allSatisfy { $0.specification.directory == "d" })
    }

    @Test("the options of the call fill what an entry of a file leaves open")
    func filled() {
        var options = TaskSpecification(url: "")
        options.directory = "isos"
        options.checksumURL = "http://h/SHA256SUMS"
        options.connections = .exactly(2)
        var entry = TaskSpecification(url: "http://h/a")
        #expect(entry.filled(from: options).directory == "isos")
        #expect(entry.filled(from: options).checksumURL == "http://h/SHA256SUMS")
        #expect(entry.filled(from: options).connections == .exactly(2))
        entry.directory = "d"
        entry.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
        entry.connections = .auto
        #expect(entry.filled(from: options).directory == "d")
        #expect(entry.filled(from: options, nestsDirectory: true).directory == "isos/d")
        #expect(entry.filled(from: options).checksumURL == nil, "a digest of its own takes the list's place")
        #expect(entry.filled(from: options).connections == .auto)
        entry.checksum = nil
        entry.metalink = true
        #expect(entry.filled(from: options).checksumURL == nil, "so does what a Metalink says")
        #expect(entry.filled(from: options).metalink)
        entry.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
        options.directory = "/"
        #expect(entry.filled(from: options, nestsDirectory: true).directory == "/d")
    }

    @Test("an entry that says nothing takes the same of the options as one that says something of its own")
    func filledAlike() {
        var options = TaskSpecification(url: "")
        options.headers = ["A: b"]
        options.cookies = "c"
        options.user = "u"
        options.password = "p"
        options.limit = 7
        options.startAt = 9
        options.batch = "b"
        options.priority = .low
        options.checksumURL = "http://h/SUMS"
        options.directory = "d"
        options.noMtime = true
        options.paused = true
        for url in ["http://h/a", "ftp://h/a"] {
            for priority in [TaskPriority.normal, .high] {
                var plain = TaskSpecification(url: url)
                plain.output = "o"
                plain.priority = priority
                var other = plain
                other.maxSize = 5
                var filled = other.filled(from: options)
                filled.maxSize = nil
                #expect(plain.filled(from: options) == filled)
            }
        }
    }

    @Test("an entry with as many digests as a task may have goes through in a call of its own")
    func pieces() throws {
        var tasks = (0..<3).map { TaskSpecification(url: "http://h/\($0)") }
        tasks[1].pieceHashes = PieceHashes(
            algorithm: .sha1, length: 1 << 18,
            hashes: Array(repeating: 0xFF, count: PieceHashes.maximumByteCount / 20 * 20))
        tasks[2].pieceHashes = tasks[1].pieceHashes
        tasks[1].mirrors = (0..<64).map { "http://h\($0)/" + String(repeating: "a", count: 1_000) }
        try tasks[1].check()
        let chunks = try parts(tasks)
        #expect(chunks.count == 2)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        for chunk in chunks {
            let line = try encoder.encode(
                OutgoingRequest(
                    id: 1, method: .queuePut, parameters: QueuePutParameters(queue: 1, entries: Array(tasks[chunk]))))
            #expect(line.count <= MessageLimits.lineLength)
            #expect(JSONScan.fault(in: line) == nil)
            let request = try JSONDecoder().decode(IncomingRequest.self, from: line)
            guard case .queuePut(let parameters) = try request.command.get() else {
                Issue.record("another command")
                return
            }
            #expect(parameters.entries == Array(tasks[chunk]))
        }
    }

    @Test("ranges of ids are spelt out; a broken one is left out")
    func ids() {
        let ranges = [[TaskID(3), TaskID(5)], [TaskID(9), TaskID(9)], [TaskID(8), TaskID(2)], []]
        let result = QueueCommitResult(added: 4, updated: 0, unchanged: 0, pruned: 0, ids: ranges)
        #expect(result.taskIDs == [3, 4, 5, 9].map { TaskID($0) })
    }

    @Test("a task shows which entry it came from, by its key or by kind and URL less what is secret")
    func marks() {
        func mark(_ url: String, key: String? = nil, kind: TaskKind = .download) -> EntryIdentity? {
            var entry = TaskSpecification(kind: kind, url: url)
            entry.key = key
            return EntryIdentity(entry)
        }
        var task = sampleTask()
        #expect(mark("https://me:secret@example.org/a.iso") == EntryIdentity(task))
        #expect(mark("https://example.org/a.iso", kind: .upload) != EntryIdentity(task))
        #expect(mark("https://example.org/a.iso", key: "k") != EntryIdentity(task))
        task.key = "k"
        #expect(mark("https://example.org/other", key: "k") == EntryIdentity(task))
        #expect(mark("no url") == nil)
    }

    @Test(
        "a file's name gives its batch", arguments: [("q/nightly.yaml", "nightly"), ("a.b.yml", "a.b"), (".x", ".x")])
    func batch(path: String, name: String) { #expect(QueueFile.batch(ofPath: path) == name) }
}

@Suite struct RPCTests {
    @Test("parameters are held to the grammar of JSON, and to one value a key, before the daemon sees them")
    func parameters() throws {
        #expect(try RPC.parse(#"{"id":7}"#) == .object(["id": .integer(7)]))
        for text in [#"{"id":7,}"#, #"{"id":099}"#, #"{"id":99999.}"#, #"{"id":"\x"}"#, "{\"id\":\"a\tb\"}", "{", ""] {
            let failure = #expect(throws: Failure.self) { try RPC.parse(text) }
            #expect(failure?.status == .usage)
            #expect(failure?.message.hasPrefix("params-json: is not JSON; ") == true, "\(text)")
        }
        #expect(
            throws: Failure.usage("params-json: contains the key id twice in one object", field: "params-json")
        ) { try RPC.parse(#"{"id":3,"id":9999}"#) }
    }

    @Test("every command states its name, which would take time to derive")
    func names() {
        func unnamed(_ command: any ParsableCommand.Type) -> [String] {
            let configuration = command.configuration
            return (configuration.commandName == nil ? ["\(command)"] : [])
                + configuration.subcommands.flatMap(unnamed)
        }
        #expect(unnamed(RootCommand.self) == [])
        #expect(RootCommand.configuration.subcommands.count > 20)
    }
}
