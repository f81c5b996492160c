import TestSupport
import Testing

@testable import Transfer

@Suite("Safe file names")
struct SafeFileNameTests {
    @Test(
        "the last segment is what counts, without what trips",
        arguments: [
            ("a.iso", "a.iso"), ("../../etc/passwd", "passwd"), ("c:\\x\\y.txt", "y.txt"), ("a/", nil), ("", nil),
            ("..", nil), (".bashrc", "bashrc"), ("-rf", "rf"), ("~root", "root"), ("a\r\nb", "ab"), ("a\u{0}.b", "a.b"),
            ("x\u{202E}gpj.exe", "xgpj.exe"), ("x\u{61C}y\u{206A}", "xy"),
            ("a\u{E0001}\u{E0020}\u{E007F}.b", "a.b"), ("name. . ", "name"), (" . - ~", nil), ("con", "_con"),
            ("NUL.txt", "_NUL.txt"), ("COM10", "COM10"), ("com7.tar.gz", "_com7.tar.gz"), ("a b.txt", "a b.txt"),
            ("\u{200B}", nil), ("COM\u{B9}", "COM\u{B9}"),
        ])
    func made(suggestion: String, expected: String?) {
        #expect(SafeFileName.make(from: suggestion) == expected)
    }

    @Test("A1: no scalar without a picture of its own stays in a name, and a picture or a letter does")
    func unseen() {
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value), scalar.properties.isDefaultIgnorableCodePoint else { continue }
            #expect(SafeFileName.make(from: "a\(scalar)b.iso") == "ab.iso", "\(String(value, radix: 16))")
        }
        let fillers = "\u{AD}\u{34F}\u{115F}\u{1160}\u{17B4}\u{17B5}\u{180B}\u{180F}\u{2800}\u{3164}\u{FFA0}"
        for scalar in (fillers + "\u{FE00}\u{FE0F}").unicodeScalars {
            #expect(SafeFileName.make(from: "\(scalar)a\(scalar).i\(scalar)so\(scalar)") == "a.iso")
            #expect(SafeFileName.make(from: "\(scalar)") == nil)
        }
        let format = "\u{FFF9}\u{FFFB}\u{1D173}\u{1D17A}\u{1BCA0}\u{1BCA3}\u{E0000}\u{E0100}\u{E0FFF}\u{13430}"
        for scalar in (format + "\u{FFFD}").unicodeScalars {
            #expect(SafeFileName.make(from: "a\(scalar).iso") == "a.iso")
        }
        for name in ["Größe 日本 ✓", "\u{600}1", "a\u{6DD}1", "हिन्दी", "❤", "\u{2801}", "각", "\u{301}x"] {
            #expect(SafeFileName.make(from: name) == name)
        }
    }

    @Test(
        "a combining mark hides neither a slash nor a dot",
        arguments: [
            ("a/\u{301}b", "\u{301}b"), ("..\\\u{301}x", "\u{301}x"), (".\u{301}x", "\u{301}x"),
            ("\u{200D}..\u{301}", "\u{301}"),
        ])
    func marks(suggestion: String, expected: String) {
        #expect(SafeFileName.make(from: suggestion).map { Array($0.utf8) } == Array(expected.utf8))
    }

    @Test(
        "a URL's last segment is the name, otherwise download",
        arguments: [
            ("http://h/a/b.iso?x=/y#/z", "b.iso"), ("http://h/a%20b.txt", "a b.txt"), ("http://h", "download"),
            ("http://h/", "download"), ("http://h/..", "download"), ("http://h/a%2Fb", "b"),
            ("http://h/..%2F%CC%81x", "\u{301}x"), ("http://h/%ff%fea", "a"), ("http://h/100%", "100%"),
            ("http://h/%4", "%4"), ("http://h/%e6%bc%a2", "漢"), ("h/a", "download"), ("http://h?/a", "download"),
        ])
    func fromURL(url: String, expected: String) {
        #expect(SafeFileName.make(fromURL: url) == expected)
    }

    @Test("a long name is cut between characters and keeps its suffix")
    func long() {
        func made(_ name: String) -> String? { SafeFileName.make(from: name) }
        let letters = String(repeating: "a", count: 300)
        #expect(made(letters + ".tar.gz") == String(repeating: "a", count: 248) + ".tar.gz")
        #expect(made(String(repeating: "漢", count: 100) + ".iso") == String(repeating: "漢", count: 83) + ".iso")
        #expect(made("a." + letters) == "a." + String(repeating: "a", count: 253))
        #expect(made(String(repeating: "a", count: 254) + " b") == String(repeating: "a", count: 254))
        let one = made("e" + String(repeating: "\u{301}", count: 200) + ".txt")
        #expect(one?.utf8.first == UInt8(ascii: "e") && one?.hasSuffix(".txt") == true)
        #expect(one.map { (250...255).contains($0.utf8.count) } == true)
    }

    private static let pieces: [String] = [
        "/", "\\", ".", "..", "a", "b.tar.gz", ".tar", " ", "-", "~", "\u{0}", "\n", "\r\n", "\r", "\t", "\u{7F}",
        "\u{85}", "\u{301}", "é", "漢", "🇩🇪", "👩‍👩‍👧‍👦", "\u{200D}", "\u{202E}", "\u{2028}", "\u{FEFF}", "\u{FFFD}",
        "%2F", "%2e",
        "%00", "%0D%0A", "%", "%4", "%ff", "?", "#", ":", "//", "CON", "nul", "_", "COM1.txt",
        String(repeating: "x", count: 120), String(repeating: "\u{301}", count: 90), String(repeating: "漢", count: 60),
    ]

    @Test("what is made is safe, and making it safe again changes nothing")
    func fuzz() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<20_000 {
            var name = ""
            for _ in 0..<Int.random(in: 1...9, using: &generator) {
                name.unicodeScalars += (Self.pieces.randomElement(using: &generator) ?? "").unicodeScalars
            }
            for safe in [SafeFileName.make(from: name), SafeFileName.make(fromURL: "http://h/" + name)] {
                guard let safe else { continue }
                let bytes = Array(safe.utf8)
                let isSafe =
                    (1...255).contains(bytes.count) && bytes[0] != UInt8(ascii: ".")
                    && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
                    && bytes.last != UInt8(ascii: ".") && bytes.last != UInt8(ascii: " ")
                    && SafeFileName.make(from: safe).map { Array($0.utf8) } == bytes
                guard isSafe else {
                    Issue.record("\(name.debugDescription) became \(safe.debugDescription)")
                    return
                }
            }
        }
    }
}
