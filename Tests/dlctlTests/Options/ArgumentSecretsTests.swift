import Testing

@testable import TaskModel
@testable import dlctl

@Suite struct ArgumentSecretsTests {
    /// Returns the arguments as the process list shows them.
    private static func shown(_ arguments: [String]) -> [String] {
        let bytes = arguments.map { Array($0.utf8) }
        return zip(bytes, ArgumentSecrets.ranges(in: bytes)).map { bytes, ranges in
            var bytes = bytes
            for index in ranges.joined() { bytes[index] = UInt8(ascii: "*") }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    @Test(
        "the user info of a URL and what follows its path are hidden",
        arguments: [
            ("http://host/a.iso", "http://host/a.iso"), ("http://host", "http://host"),
            ("http://u:pw@host/x", "http://****@host/x"), ("http://u@host", "http://*@host"),
            ("http://host/x?sig=a", "http://host/x?*****"), ("http://host?sig=a", "http://host?*****"),
            ("http://host/x#token", "http://host/x#*****"), ("http://host/x;id=1/y", "http://host/x;******"),
            ("http://u:p?w#@host/x?a=b", "http://******@host/x?***"), ("sftp://u:p@w@host/", "sftp://*****@host/"),
            ("http://host/a@b", "http://host/a@b"), ("http://host/x?", "http://host/x?"), ("://@", "://@"),
            ("--mirror=http://u:pw@host/x?s", "--mirror=http://****@host/x?*"),
            ("http://a/http://u:p@b/c?d", "http://a/http://***@b/c?*"),
            ("get http://u@a http://v:w@b", "get http://*@a http://***@b"),
            ("http://ü:é@host/", "http://*****@host/"), ("file?x", "file?x"), ("", ""), (":/", ":/"),
        ])
    func urls(argument: String, shown: String) {
        #expect(Self.shown(["add", argument]) == ["add", shown])
        #expect(Self.shown(["add", "--referer", argument, "--wait"]) == ["add", "--referer", shown, "--wait"])
    }

    @Test("the values of options that carry secrets are hidden, but not the names of files")
    func options() {
        #expect(
            Self.shown(["add", "--header", "A: b", "--header=C: d", "--user", "@me", "--proxy=http://p", "-d", "x"])
                == ["add", "--header", "****", "--header=****", "--user", "***", "--proxy=********", "-d", "x"])
        #expect(
            Self.shown(["upload", "--form", "a=b", "--form=c=d", "--form", "@f", "--form=@f", "--header", "@-", "f"])
                == ["upload", "--form", "***", "--form=***", "--form", "@f", "--form=@f", "--header", "@-", "f"])
        #expect(Self.shown(["add", "--password-file", "pw", "--cookies=jar"]).suffix(2) == ["pw", "--cookies=jar"])
        #expect(Self.shown(["add", "--header"]) == ["add", "--header"])
        #expect(Self.shown(["add", "--header=", "--form", "", "x"]) == ["add", "--header=", "--form", "", "x"])
    }

    @Test("each option of a secret field is hidden unless its value is a file")
    func fields() {
        for field in TaskField.all where field.secrecy == .value && (field.option != nil || field.change != nil) {
            if case .contents = field.syntax { continue }
            let short = (field.option?.short ?? field.change?.short).map { ["-\($0)"] } ?? []
            for name in ["--" + field.word] + short {
                #expect(ArgumentSecrets.options.contains(name), "\(name)")
            }
        }
    }

    @Test("the parameters of a raw call are hidden")
    func call() {
        #expect(
            Self.shown(["--socket", "s", "rpc", "--json", "task.add", "{\"a\":1}", "--socket", "rpc"])
                == ["--socket", "s", "rpc", "--json", "task.add", "*******", "--socket", "rpc"])
        #expect(Self.shown(["rpc", "m", "--", "-x"]) == ["rpc", "m", "--", "**"])
        #expect(Self.shown(["rpc", "--", "m", "[1]"]) == ["rpc", "--", "m", "***"])
        #expect(Self.shown(["rpc", "--socket"]) == ["rpc", "--socket"])
        #expect(Self.shown(["show", "rpc", "7"]) == ["show", "rpc", "7"])
        #expect(Self.shown(["rpc", "--"]) == ["rpc", "--"])
    }

    @Test("an argument that is not valid UTF-8 keeps its length")
    func bytes() {
        let argument = Array("http://".utf8) + [0xFF, 0xFE, UInt8(ascii: "@"), 0xFF]
        #expect(ArgumentSecrets.ranges(in: [argument]) == [[7..<9]])
        #expect(ArgumentSecrets.ranges(in: [Array("--header".utf8), [0xFF]]) == [[], [0..<1]])
        #expect(ArgumentSecrets.ranges(in: []) == [])
    }
}
