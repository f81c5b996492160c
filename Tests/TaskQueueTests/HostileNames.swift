import TestSupport

/// A generator of malicious names and directories, deterministic for a seed.
struct HostileNames {
    private var generator: SeededGenerator

    /// The entries of ``NameTrial``'s roots that lead elsewhere.
    static let links = ["out", "abs", "up", "self", "loop", "slash", "cwd", "secret", "other", "deep"]

    private static let pieces: [String] =
        links + [
            "/", "/", "/", "\\", ".", "..", "../", "/..", "./", "//", "a", "b.tar.gz", ".tar", " ", "-", "~", "\u{0}",
            "\n", "\r\n", "\t", "\u{7F}", "\u{85}", "\u{301}", "é", "漢", "🇩🇪", "👩‍👩‍👧‍👦", "\u{200D}", "\u{202E}",
            "\u{2028}", "\u{2029}", "\u{FEFF}", "\u{FFFD}", "\u{FF0F}", "\u{2215}", "\u{2024}", "%2F",
            "%2e%2e", "%00", "%0D%0A", "%", "%c0%af", "%ff", "%CC%81", "?", "#", ":", "C:", "CON", "nul",
            "COM1.txt", ".dld-", ".part", "'", "\"", ";",
            "=", "*", "$(x)", "|", "@", "&", "<", ">", "etc", "passwd", "proc", "fd",
            String(repeating: "x", count: 120), String(repeating: "\u{301}", count: 90),
            String(repeating: "漢", count: 60), String(repeating: "../", count: 9),
        ]

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    /// Returns `true` in one of `times` cases.
    mutating func happens(_ times: Int) -> Bool { number(1...times) == 1 }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[number(0...values.count - 1)] }

    /// Returns a name joined from Unicode scalars: a combining mark after a slash must not merge with it into one
    /// character.
    mutating func name() -> String {
        var name = String.UnicodeScalarView()
        for _ in 0..<number(1...7) {
            if happens(9), let scalar = Unicode.Scalar(UInt32(number(0...0x2FFF))) {
                name.append(scalar)
            } else {
                name.append(contentsOf: pick(Self.pieces).unicodeScalars)
            }
        }
        return String(name)
    }

    /// Returns the bytes of ``name()`` with random bytes inserted, which may be invalid UTF-8.
    mutating func bytes() -> [UInt8] {
        var bytes = Array(name().utf8)
        for _ in 0..<number(0...3) { bytes.insert(UInt8(number(0...255)), at: number(0...bytes.count)) }
        return bytes
    }

    /// Returns a directory, sometimes absolute: beneath one of `roots`, beside it, or anywhere.
    mutating func directory(_ roots: [String]) -> String {
        let components = (0..<number(0...5)).map { _ in
            switch number(0...9) {
            case 0: ".."
            case 1: "."
            case 2, 3, 4: pick(Self.links)
            case 5: name()
            default: pick(["a", "b", "c d", "é", "..a", "b..", "...", "\u{301}x", "~"])
            }
        }
        let tail = components.joined(separator: pick(["/", "/", "//", "/./"]))
        switch number(0...5) {
        case 0: return pick(roots) + "/" + tail
        case 1: return pick(roots) + tail
        case 2: return pick(["/", "//", "/etc/", "/tmp/", "/proc/self/cwd/", "/.", "/../"]) + tail
        default: return tail
        }
    }
}
