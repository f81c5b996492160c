import TaskModel
import TestSupport
import Testing

@Suite("File names")
struct FileNameTests {
    /// Returns the violation of the rules for any name suggested by a server, or `nil`.
    private static func fault(_ name: String) -> String? {
        let bytes = Array(name.utf8)
        if bytes.isEmpty || bytes.count > 255 { return "has \(bytes.count) bytes" }
        if bytes.contains(UInt8(ascii: "/")) { return "holds a slash" }
        if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "contains a control character" }
        if bytes[0] == UInt8(ascii: ".") { return "begins with a dot" }
        if bytes.last == UInt8(ascii: ".") || bytes.last == UInt8(ascii: " ") { return "ends with a dot or space" }
        if FileName.makeSafe(name).map({ Array($0.utf8) }) != bytes {
            return "becomes \(FileName.makeSafe(name) ?? "nothing")"
        }
        return (try? FileName.check(name)) == nil ? "is refused by check" : nil
    }

    private static let pieces: [String] = [
        "/", "\\", ".", "..", "a", "b.tar.gz", ".tar", " ", "-", "~", "\u{0}", "\n", "\r\n", "\r", "\t", "\u{7F}",
        "\u{85}", "\u{301}", "\u{20D0}", "é", "漢", "🇩🇪", "👩‍👩‍👧‍👦", "\u{200D}", "\u{202E}", "\u{2028}", "\u{FEFF}",
        "\u{FFFD}", "%2F", "%2e", "%00", "%0D%0A", "%", "%4", "%ff", "%CC%81", "?", "#", ":", "//", "CON", "nul", "_",
        "COM1.txt", String(repeating: "x", count: 120), String(repeating: "\u{301}", count: 90),
        String(repeating: "漢", count: 60), ".dld-", "'", "\"", "$(x)", "|",
    ]

    @Test("A1, A2: a hundred thousand random names come out safe, from a header and from a URL")
    func fuzz() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<50_000 {
            var name = ""
            for _ in 0..<Int.random(in: 1...9, using: &generator) {
                name.unicodeScalars += (Self.pieces.randomElement(using: &generator) ?? "").unicodeScalars
            }
            if let safe = FileName.makeSafe(name), let fault = Self.fault(safe) {
                Issue.record("\(name.debugDescription) → \(safe.debugDescription) \(fault)")
                return
            }
            let derived = FileName.fromURL("http://h/" + name)
            if let fault = Self.fault(derived) {
                Issue.record("URL \(name.debugDescription) → \(derived.debugDescription) \(fault)")
                return
            }
        }
    }

    @Test(
        "A2: the last segment is what counts, without what trips",
        arguments: [
            ("a.iso", "a.iso"), ("../../etc/passwd", "passwd"), ("c:\\x\\y.txt", "y.txt"), ("a/", nil), ("", nil),
            ("..", nil), (".bashrc", "bashrc"), ("-rf", "rf"), ("~root", "root"), ("a\r\nb", "ab"), ("a\u{0}.b", "a.b"),
            ("x\u{202E}gpj.exe", "xgpj.exe"), ("x\u{61C}y\u{206A}", "xy"),
            ("a\u{E0001}\u{E0020}\u{E007F}.b", "a.b"), ("name. . ", "name"), (" . - ~", nil), ("con", "_con"),
            ("NUL.txt", "_NUL.txt"), ("COM10", "COM10"), ("a b.txt", "a b.txt"), ("\u{200B}", nil),
        ])
    func safe(name: String, expected: String?) {
        #expect(FileName.makeSafe(name) == expected)
    }

    @Test("A1: no scalar without a picture of its own stays in a name, and a picture or a letter does")
    func unseen() {
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value), scalar.properties.isDefaultIgnorableCodePoint else { continue }
            #expect(FileName.makeSafe("a\(scalar)b.iso") == "ab.iso", "\(String(value, radix: 16))")
        }
        let fillers = "\u{AD}\u{34F}\u{115F}\u{1160}\u{17B4}\u{17B5}\u{180B}\u{180F}\u{2800}\u{3164}\u{FFA0}"
        for scalar in (fillers + "\u{FE00}\u{FE0F}").unicodeScalars {
            #expect(FileName.makeSafe("\(scalar)a\(scalar).i\(scalar)so\(scalar)") == "a.iso")
            #expect(FileName.makeSafe("\(scalar)") == nil)
        }
        let format = "\u{FFF9}\u{FFFB}\u{1D173}\u{1D17A}\u{1BCA0}\u{1BCA3}\u{E0000}\u{E0100}\u{E0FFF}\u{13430}"
        for scalar in (format + "\u{FFFD}").unicodeScalars {
            #expect(FileName.makeSafe("a\(scalar).iso") == "a.iso")
        }
        for name in ["Größe 日本 ✓", "\u{600}1", "a\u{6DD}1", "हिन्दी", "❤", "\u{2801}", "각", "\u{301}x"] {
            #expect(FileName.makeSafe(name) == name)
        }
    }

    @Test(
        "a combining mark hides neither a slash nor a dot",
        arguments: [
            ("a/\u{301}b", "\u{301}b"), ("..\\\u{301}x", "\u{301}x"), (".\u{301}x", "\u{301}x"),
            ("\u{200D}..\u{301}", "\u{301}"),
        ])
    func marks(name: String, expected: String) {
        #expect(FileName.makeSafe(name).map { Array($0.utf8) } == Array(expected.utf8))
    }

    @Test(
        "a URL's last segment is the name, otherwise download",
        arguments: [
            ("http://h/a/b.iso?x=/y#/z", "b.iso"), ("http://h/a%20b.txt", "a b.txt"), ("http://h", "download"),
            ("http://h/", "download"), ("http://h/..", "download"), ("http://h/a%2Fb", "b"),
            ("http://h/..%2F%CC%81x", "\u{301}x"), ("http://h/%ff%fea", "a"), ("http://h/100%", "100%"),
            ("http://h/%4", "%4"), ("http://h/%e6%bc%a2", "漢"), ("h/a", "download"), ("http://h?/a", "download"),
            ("http://h/a.pdf;jsessionid=secret", "a.pdf"), ("http://h/a;v=1;TOKEN=secret;b", "a;v=1;b"),
            ("http://h/token=1", "token=1"), ("http://h/;sid=secret", "download"), ("http://h/a;v=%31", "a;v=1"),
        ])
    func fromURL(url: String, expected: String) {
        #expect(FileName.fromURL(url) == expected)
    }

    @Test("a long name is cut between characters and keeps its suffix")
    func long() {
        let ascii = FileName.makeSafe(String(repeating: "a", count: 300) + ".tar.gz")
        #expect(ascii == String(repeating: "a", count: 248) + ".tar.gz")
        let wide = FileName.makeSafe(String(repeating: "漢", count: 100) + ".iso")
        #expect(wide == String(repeating: "漢", count: 83) + ".iso")
        let family = FileName.makeSafe(String(repeating: "👨🏽‍", count: 1) + String(repeating: "🇩🇪", count: 40))
        #expect(family?.hasSuffix("🇩🇪") == true && (family?.utf8.count ?? 0) <= 255)
        let noSuffix = FileName.makeSafe("a." + String(repeating: "b", count: 300))
        #expect(noSuffix == "a." + String(repeating: "b", count: 253))
        #expect(FileName.makeSafe(String(repeating: "a", count: 254) + " b") == String(repeating: "a", count: 254))
    }

    @Test("one character longer than a name is cut within itself")
    func longestCharacter() {
        let name = FileName.makeSafe("e" + String(repeating: "\u{301}", count: 200) + ".txt")
        #expect(name?.utf8.first == UInt8(ascii: "e"))
        #expect(name?.hasSuffix(".txt") == true)
        #expect(name.map { (250...255).contains($0.utf8.count) } == true)
    }

    @Test(
        "a number goes before the suffix",
        arguments: [
            ("a.iso", 1, "a (1).iso"), ("a.tar.gz", 2, "a (2).tar.gz"), ("README", 12, "README (12)"),
            (".hidden", 1, ".hidden (1)"), (".tar.gz", 1, ".tar.gz (1)"),
            ("a.averyveryverylongsuffix", 1, "a.averyveryverylongsuffix (1)"), ("a (1).iso", 1, "a (1) (1).iso"),
        ])
    func numbered(name: String, number: Int, expected: String) {
        #expect(FileName.numbered(name, number) == expected)
    }

    @Test("a numbered name keeps suffix and length")
    func numberedLength() {
        for stem in [String(repeating: "a", count: 251), String(repeating: "漢", count: 83) + "aa"] {
            let name = stem + ".iso"
            #expect(name.utf8.count == 255)
            let numbered = FileName.numbered(name, 10_000)
            #expect(numbered.hasSuffix(" (10000).iso") && (252...255).contains(numbered.utf8.count))
            #expect(numbered.dropLast(12).allSatisfy { stem.contains($0) })
        }
    }

    @Test(
        "a person's name that cannot stand is refused",
        arguments: [
            ("", .invalid), (".", .pathNotAllowed), ("..", .pathNotAllowed), ("a/b", .pathNotAllowed),
            ("/", .pathNotAllowed), ("../x", .pathNotAllowed),
            ("a/\u{301}b", .pathNotAllowed), ("a\nb", .invalid), ("a\r\nb", .invalid), ("a\u{0}", .invalid),
            ("a\u{7F}", .invalid), (".dld-x", .invalid), (".dld-\u{301}", .invalid),
            (String(repeating: "é", count: 128), .invalid),
        ] as [(String, ErrorCode)])
    func check(name: String, code: ErrorCode) {
        #expect { try FileName.check(name) } throws: { error in
            (error as? FieldError)?.field == "output" && (error as? FieldError)?.code == code
        }
    }

    @Test(
        "a person may name a file as strangely as the system allows", arguments: [".a", "-", "a\\b", "...", "é ", "~"])
    func allowed(name: String) {
        #expect(throws: Never.self) { try FileName.check(name) }
    }

    @Test(
        "a directory that climbs, or cannot stand, is refused",
        arguments: [
            ("..", .pathNotAllowed), ("a/../b", .pathNotAllowed), ("/srv/..", .pathNotAllowed),
            ("../\u{301}a", .pathNotAllowed), ("", .invalid), ("a\nb", .invalid), ("a\u{0}", .invalid),
            (String(repeating: "a", count: 256), .invalid), (String(repeating: "a/", count: 2048), .invalid),
        ] as [(String, ErrorCode)])
    func directories(directory: String, code: ErrorCode) {
        #expect { try FileName.checkDirectory(directory) } throws: { error in
            (error as? FieldError)?.field == "directory" && (error as? FieldError)?.code == code
        }
    }

    @Test("a directory may be plain", arguments: ["a", "a/b/", "/srv//x", ".", "..a/b..", "/"])
    func plainDirectories(directory: String) {
        #expect(throws: Never.self) { try FileName.checkDirectory(directory) }
    }
}
