import FoundationEssentials
import Glibc
import TaskModel
import Testing

@testable import dlctl

@Suite struct EscapeTests {
    @Test("JSON holds the same value, and nothing that steers a terminal or turns the direction of writing (A22)")
    func json() throws {
        let text = "a\u{9B}31m\u{7F}\u{202E}\u{61C}\u{E0041}\u{1B}\n é 日本 🇩🇪"
        let json = Output(STDOUT_FILENO).encoded([text])
        #expect(json.hasPrefix(#"["a\u009b31m\u007f\u202e\u061c\udb40\udc41\u001b\n é 日本 🇩🇪"#))
        #expect(try JSONDecoder().decode([String].self, from: Data(json.utf8)) == [text])
        #expect(Escape.json("{\"a\":\n 1}") == "{\"a\":\n 1}")
    }

    @Test("A22: control characters and marks that turn the direction of writing become visible")
    func escapes() {
        #expect(Escape.visible("a\u{1B}[2Jb") == "a\\u{1B}[2Jb")
        #expect(Escape.visible("a\r\nb\tc") == "a\\r\\nb\\tc")
        #expect(Escape.visible("x\u{202E}gpj.exe") == "x\\u{202E}gpj.exe")
        #expect(Escape.visible("\u{9B}31m\u{7F}\u{0}") == "\\u{9B}31m\\u{7F}\\u{0}")
        #expect(Escape.visible("Größe 日本 ✓") == "Größe 日本 ✓")
    }

    @Test("A22: what has no picture of its own becomes visible, everywhere but in emoji")
    func unseen() {
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value), scalar.properties.isDefaultIgnorableCodePoint else { continue }
            let hex = String(value, radix: 16, uppercase: true)
            #expect(Escape.visible("a\(scalar)b") == "a\\u{\(hex)}b")
        }
        #expect(Escape.visible("a\u{2800}\u{FFF9}\u{13430}") == "a\\u{2800}\\u{FFF9}\\u{13430}")
        #expect(Escape.visible("©\u{FE0F}") == "©\u{FE0F}")
        #expect(Escape.visible("1\u{FE0F}.exe") == "1\\u{FE0F}.exe")
        #expect(Escape.visible("\u{600}1 a\u{6DD}1 हिन्दी") == "\u{600}1 a\u{6DD}1 हिन्दी")
    }

    @Test(
        "emoji that are joined to one stay as they are",
        arguments: [
            "❤️", "1️⃣", "👩\u{200D}🚀", "👩🏽\u{200D}🚀.png", "❤️\u{200D}🔥", "🤷\u{200D}♀️",
            "👨\u{200D}👩\u{200D}👧\u{200D}👦",
        ])
    func joinedEmoji(text: String) {
        #expect(Escape.visible(text) == text)
        #expect(DisplayWidth.of(String(text.prefix(1))) == 2)
    }

    @Test("a joiner that joins no emoji is shown, and so are other invisible marks beside emoji")
    func otherJoiners() {
        #expect(Escape.visible("a\u{200D}b") == "a\\u{200D}b")
        #expect(Escape.visible("\u{200D}🚀") == "\\u{200D}🚀")
        #expect(Escape.visible("👩\u{200D}") == "👩\\u{200D}")
        #expect(Escape.visible("👩\u{200D}exe") == "👩\\u{200D}exe")
        #expect(Escape.visible("1\u{200D}🚀") == "1\\u{200D}🚀")
        #expect(Escape.visible("👩\u{200D}\u{200D}🚀") == "👩\\u{200D}\\u{200D}🚀")
        #expect(Escape.visible("👩\u{200C}🚀\u{202E}") == "👩\\u{200C}🚀\\u{202E}")
        #expect(Escape.visible("🏽\u{200D}🚀") == "🏽\\u{200D}🚀")
    }
}

@Suite struct DisplayWidthTests {
    @Test("wide characters take two columns, combining marks none")
    func widths() {
        #expect(DisplayWidth.of("abc") == 3)
        #expect(DisplayWidth.of("日本") == 4)
        #expect(DisplayWidth.of("e\u{301}") == 1)
        #expect(DisplayWidth.of("🙂") == 2)
        #expect(DisplayWidth.of("👨\u{200D}👩\u{200D}👧") == 2)
        #expect(DisplayWidth.of("1️⃣🇩🇪") == 4)
        #expect(DisplayWidth.of("👍🏽") == 2 && DisplayWidth.of("☝🏽") == 2)
        #expect(DisplayWidth.of("❤️") == 2 && DisplayWidth.of("©\u{FE0F}") == 2 && DisplayWidth.of("❤") == 1)
        #expect(DisplayWidth.of("❤\u{200D}🔥") == 2)
    }

    @Test("letters that a terminal does not join take their own columns: Thai, Devanagari; parts of Korean ones do not")
    func clusters() {
        #expect(DisplayWidth.of("น\u{E33}") == 2 && "น\u{E33}".count == 1)
        #expect(DisplayWidth.of("क\u{94D}ष") == 2 && DisplayWidth.of("क\u{93F}") == 2)
        #expect(DisplayWidth.of("\u{1112}\u{1161}\u{11AB}") == 2)
        #expect(DisplayWidth.of("\u{17000}\u{2329}\u{FE10}") == 6)
    }

    @Test("what is cut off is marked, and no wide character is halved")
    func fit() {
        #expect(DisplayWidth.fit("abcdef", 6) == "abcdef")
        #expect(DisplayWidth.fit("abcdef", 5) == "abcd…")
        #expect(DisplayWidth.fit("日本語", 4) == "日…")
        #expect(DisplayWidth.fit("abc", 0) == "")
    }
}

extension DisplayWidthTests {
    @Test("the second of two texts begins at its usual column unless one would be cut beside free space")
    func split() {
        #expect(DisplayWidth.split(5, 5, usual: 10, width: 20) == 10)
        #expect(DisplayWidth.split(5, 12, usual: 10, width: 20) == 8)
        #expect(DisplayWidth.split(5, 30, usual: 10, width: 20) == 7)
        #expect(DisplayWidth.split(11, 5, usual: 10, width: 20) == 13)
        #expect(DisplayWidth.split(30, 5, usual: 10, width: 20) == 15)
        #expect(DisplayWidth.split(30, 30, usual: 10, width: 20) == 10)
    }

    @Test("a name is shortened in the middle, and no wide character is halved")
    func fitMiddle() {
        #expect(DisplayWidth.fitMiddle("abcdef", 6) == "abcdef")
        #expect(DisplayWidth.fitMiddle("abcdefgh.iso", 8) == "abcd…iso")
        #expect(DisplayWidth.fitMiddle("日本語日本語", 6) == "日…語")
        for width in 0...14 {
            for text in ["日本語日本語", "abcdefghijkl", "aé日🙂b日🙂c"] {
                #expect(DisplayWidth.of(DisplayWidth.fitMiddle(text, width)) <= width)
            }
        }
    }
}

@Suite struct TableTests {
    private let columns = [
        Table.Column(title: "ID", alignsRight: true), Table.Column(title: "A"), Table.Column(title: "B"),
    ]

    @Test("columns align, and the titles stand once")
    func pages() {
        var table = Table(columns, width: nil)
        #expect(
            table.page([["1", "x", "long name"], ["22", "yyy", "b"]]) == [
                "ID  A    B", " 1  x    long name", "22  yyy  b",
            ])
        #expect(table.page([["333", "z", "c"]]) == ["333  z    c"])
    }

    @Test("on a terminal the last column is cut to its width")
    func cut() {
        var table = Table(columns, width: 20)
        let lines = table.page([["1", "x", "a name that is far too long"]])
        #expect(lines.last == " 1  x  a name that …")
    }

    @Test("numbers are never cut: names are, then columns are left out")
    func numbers() {
        let fields: [ListField] = [.id, .name, .bytesTotal, .createdAt]
        let columns = fields.enumerated().map { $1.column(omission: $0 == 0 ? nil : fields.count - $0) }
        let task = sampleTask(123, name: String(repeating: "n", count: 50) + ".iso", of: 5_000_000)
        let row = fields.map { $0.cell(task) }
        var wide = Table(columns, width: nil)
        #expect(wide.page([row]).last == "123  \(task.name ?? "")     4.8 MiB  \(Clock.local(0))")
        var narrow = Table(columns, width: 60)
        let line = narrow.page([row]).last ?? ""
        #expect(line.hasSuffix("n.iso     4.8 MiB  \(Clock.local(0))") && line.contains("…"), "\(line)")
        #expect(narrow.omitted.isEmpty)
        var narrower = Table(columns, width: 32)
        #expect(narrower.page([row]).last?.hasSuffix("4.8 MiB") == true)
        #expect(narrower.omitted == ["CREATEDAT"])
    }

    @Test("no line of a list is wider than the terminal", arguments: [1, 10, 20, 40, 60, 80, 120, 200])
    func widths(width: Int) {
        var waiting = sampleTask(123_456, .waiting, reason: .retry, name: String(repeating: "長い名前", count: 20))
        waiting.error = TaskFailure(code: .connect, message: "port 18999 of example.org refuses the connection")
        waiting.notBefore = 14_000
        var active = sampleTask(7, .active, name: "a.iso", done: 1 << 29, of: 1 << 30)
        active.rate = 999 << 20
        var table = Table(TaskColumns.all, width: width)
        for tasks in [[active, waiting], [sampleTask(9_999_999_999)]] {
            for line in table.page(tasks.map { TaskColumns.row($0, now: 0) }) {
                #expect(DisplayWidth.of(line) <= width, "\(line)")
            }
        }
    }

    @Test("of the columns of a list the name gives way first, then the state, then rate and size")
    func order() {
        var waiting = sampleTask(1, .waiting, reason: .retry, name: "a-rather-long-name.iso", of: 1 << 30)
        waiting.error = TaskFailure(code: .dns, message: "m")
        waiting.notBefore = 14_000
        func line(_ width: Int) -> String? {
            var table = Table(TaskColumns.all, width: width)
            return table.page([TaskColumns.row(waiting, now: 0)]).last
        }
        #expect(line(200) == " 1  name does not resolve, 1st try in 14 s  1.0 GiB     -     -  a-rather-long-name.iso")
        #expect(line(80) == " 1  name does not resolve, 1st try in 14…  1.0 GiB     -     -  a-rather…ame.iso")
        #expect(line(60) == " 1  name does not re…  1.0 GiB     -     -  a-rather…ame.iso")
        #expect(line(45) == " 1  name does not…  1.0 GiB  a-rather…ame.iso")
        #expect(line(40) == " 1  name does not res…  a-rather…ame.iso")
        #expect(line(20) == " 1  name does not…")
    }
}

@Suite struct DescribeTests {
    @Test(
        "clock readings", arguments: [(0, "0:00"), (74, "1:14"), (3661, "1:01:01"), (90_000, "1d 01h"), (-5, "0:00")])
    func clock(seconds: Int64, text: String) { #expect(Describe.clock(seconds: seconds) == text) }

    @Test(
        "spans",
        arguments: [(0, "0 ms"), (999, "999 ms"), (1499, "1 s"), (125_000, "2 min 5 s"), (12_000_000, "3 h 20 min")])
    func span(milliseconds: Int64, text: String) { #expect(Describe.span(milliseconds: milliseconds) == text) }

    @Test("100 percent means all of it")
    func percent() {
        #expect(Describe.percent(999_999, of: 1_000_000) == 99)
        #expect(Describe.percent(5, of: 5) == 100)
        #expect(Describe.percent(9, of: 5) == 100)
        #expect(Describe.percent(5, of: 0) == nil)
    }

    @Test("a state comes with what explains it")
    func states() {
        #expect(Describe.state(sampleTask(done: 43, of: 100), now: 0) == "active 43%")
        let failed = sampleTask(7, .failed, error: TaskFailure(code: .dns, message: "no such host"))
        #expect(Describe.state(failed, now: 0) == "failed: name does not resolve")
        #expect(Describe.ending(failed) == "task 7 failed: dns: no such host")
        #expect(Describe.state(sampleTask(7, .paused, reason: .user), now: 0) == "paused")
        var half = sampleTask(7, .paused, reason: .user)
        (half.bytesDone, half.bytesTotal) = (3, 4)
        #expect(Describe.state(half, now: 0) == "paused 75%")
        #expect(Describe.state(sampleTask(7, .paused, reason: .auth), now: 0) == "paused: the server refuses access")
        #expect(
            Describe.ending(sampleTask(7, .paused, reason: .auth))
                == "task 7 is paused: auth; give a login: dlctl set 7 --user NAME --password-file FILE "
                + "(or --header 'K: V')")
    }

    @Test("the reason of a pause stands for the code of its error")
    func pausedEnding() {
        let error = TaskFailure(code: .http(403), message: "the server refuses access (403)")
        #expect(
            Describe.ending(sampleTask(7, .paused, reason: .auth, error: error)).hasPrefix(
                "task 7 is paused: auth: the server refuses access (403); give a login"))
    }

    @Test("counts stand in the order of a task's life, without those that are none")
    func counts() {
        #expect(
            Describe.counts(["completed": 2, "queued": 1, "failed": 0, "novel": 4]) == "1 queued, 2 completed, 4 novel")
        #expect(Describe.counts([:]) == "none")
    }
}

@Suite struct RemedyTests {
    @Test("what a person has to do stands beside the reason")
    func remedies() {
        let expired = sampleTask(7, .paused, reason: .urlExpired)
        #expect(Describe.ending(expired).contains("dlctl set 7 --url NEW"))
        #expect(Show.lines(expired, now: 0).contains { $0.contains("dlctl set 7 --url NEW") })
        #expect(Describe.remedy(sampleTask(7, .paused, reason: .user)) == nil)
        #expect(Describe.remedy(sampleTask(7, .failed)) == nil)
        let remedy = Describe.remedy(sampleTask(7, .paused, reason: .sourceChanged))
        #expect(remedy == "to send the changed file: dlctl resume 7")
    }

    @Test("a list says once what to do about expired URLs")
    func list() {
        #expect(List.note(expired: []) == nil)
        #expect(List.note(expired: [TaskID(7)])?.hasSuffix("dlctl set 7 --url NEW") == true)
        #expect(List.note(expired: [TaskID(7), TaskID(9)])?.hasPrefix("2 tasks: ") == true)
    }
}
