import TaskModel
import Testing

@testable import TaskFiles

@Suite("Lists of digests")
struct ChecksumListTests {
    private static let a = String(repeating: "a1", count: 32)
    private static let b = String(repeating: "B2", count: 32)
    private static let md5 = "d41d8cd98f00b204e9800998ecf8427e"
    private static let sha1 = String(repeating: "1f", count: 20)
    private static let sha512 = String(repeating: "5e", count: 64)

    private static func list(_ text: String) throws(FileError) -> ChecksumList {
        try ChecksumList(parsing: Array(text.utf8), file: "f")
    }

    private static func digest(_ text: String, _ name: String = "x.iso") throws -> String {
        try list(text).checksum(for: name).description
    }

    @Test("coreutils' lines are read, text and binary, of every algorithm by the digest's length")
    func coreutils() throws {
        #expect(try Self.digest("\(Self.a)  x.iso\n") == "sha-256:\(Self.a)")
        #expect(try Self.digest("\(Self.a) *x.iso") == "sha-256:\(Self.a)")
        #expect(try Self.digest("\(Self.md5)  x.iso\n") == "md5:\(Self.md5)")
        #expect(try Self.digest("\(Self.sha1)  x.iso\n") == "sha-1:\(Self.sha1)")
        #expect(try Self.digest("\(Self.sha512)  x.iso\n") == "sha-512:\(Self.sha512)")
        #expect(try Self.digest("\(Self.b)  x.iso\n") == "sha-256:\(Self.b.lowercased())")
        #expect(try Self.digest("\(Self.a)\tx.iso\n\(Self.b) y.iso\n") == "sha-256:\(Self.a)")
        #expect(try Self.digest("\(Self.a)   x.iso\n", " x.iso") == "sha-256:\(Self.a)")
    }

    @Test("the file is found among others, with comments, blank lines, CR LF and a byte order mark")
    func among() throws {
        let text = "\u{FEFF}# x.iso\r\n\r\n\(Self.b)  y.iso\r\nnot a line\r\n\(Self.a)  x.iso\r\n"
        #expect(try Self.digest(text) == "sha-256:\(Self.a)")
        #expect(try Self.digest(text, "/pub/y.iso") == "sha-256:\(Self.b.lowercased())")
        #expect(throws: fault(1, 1, "has no line for the file name \"z.iso\"")) { try Self.digest(text, "z.iso") }
        #expect(throws: fault(1, 1, "has no line for the file name \".iso\"")) { try Self.digest(text, ".iso") }
        #expect(throws: fault(1, 1, "has no line for the file name \"a?b\"")) { try Self.digest(text, "a\u{202E}b") }
        #expect(throws: fault(1, 1, "has no line for the file name \"\"")) { try Self.digest(text, "") }
    }

    @Test("F78: digests of gpg --print-md are read, over several lines, behind long names, and of the algorithms named")
    func printed() throws {
        let hex = (0..<32).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined().uppercased()
        let groups = stride(from: 0, to: 64, by: 8).map { start in String(hex.dropFirst(start).prefix(8)) }
        let (first, rest) = (groups.prefix(6).joined(separator: " "), groups.dropFirst(6).joined(separator: " "))
        let expected = "sha-256:\(hex.lowercased())"
        #expect(try Self.digest("x.iso: \(first)\n       \(rest)\n") == expected)
        #expect(try Self.digest("dir/x.iso: \n\(first)\n \(rest)\n", "/pub/dir/x.iso") == expected)
        #expect(try Self.digest("a: b/x.iso: \(groups.joined(separator: " "))", "x.iso") == expected)
        let md5 = "5D 41 40 2A BC 4B 2A 76  B9 71 9D 91 10 17 C5 92"
        let all = """
            x.iso:    MD5 = \(md5)
            x.iso: RMD160 = 108F 07B8 3824 1261 2C04  8D07 D13F 8141 1844 5ACD
            x.iso: SHA256 = \(first)
                            \(rest)
            y.iso:    MD5 = \(md5)
            """
        #expect(try Self.digest(all) == expected)
        #expect(try Self.digest(all, "y.iso") == "md5:5d41402abc4b2a76b9719d911017c592")
        #expect(try Self.digest("x.iso: \(md5)\nnot a digest\n") == "md5:5d41402abc4b2a76b9719d911017c592")
        for wrong in ["x.iso: 01 02", "x.iso: SHA256 = \(md5)", "x.iso:", "x.iso: \(first)\ny.iso: \(rest)"] {
            #expect(throws: FileError.self, "\(wrong)") { try Self.digest(wrong) }
        }
    }

    @Test(
        "F78: an algorithm may be named before the digest, and the name may come first",
        arguments: [
            "sha256:\(a) x.iso", "SHA-256:\(a)  *x.iso", "sha256=\(a)\tx.iso", "SHA256 \(a) ./x.iso", "sha256:\(a)",
            "x.iso \(a)", "./x.iso\t\(a)  ", "x.iso  \(a)",
        ])
    func otherForms(line: String) throws {
        #expect(try Self.digest(line) == "sha-256:\(Self.a)")
        #expect(try Self.digest(line + "\n" + Self.md5 + "  y.iso\n", "y.iso") == "md5:\(Self.md5)")
    }

    @Test("F78: a list in UTF-16 is read, in either order of bytes")
    func utf16() throws {
        let text = "\u{FEFF}SHA256 (ä.iso) = \(Self.a)\r\n"
        for isBig in [false, true] {
            let bytes = text.utf16.flatMap { unit in
                let pair = [UInt8(truncatingIfNeeded: unit >> 8), UInt8(truncatingIfNeeded: unit)]
                return isBig ? pair : pair.reversed()
            }
            #expect(try ChecksumList(parsing: bytes, file: "f").checksum(for: "ä.iso").hex == Self.a)
            #expect(throws: FileError.self) { try ChecksumList(parsing: Array(bytes.dropLast()), file: "f") }
        }
    }

    @Test("names that coreutils escape come back")
    func escaped() throws {
        #expect(try Self.digest("\\\(Self.a)  a\\\\b\\nc\\rd\n", "a\\b\nc\rd") == "sha-256:\(Self.a)")
        #expect(try Self.digest("\\SHA256 (a\\nb) = \(Self.a)\n", "a\nb") == "sha-256:\(Self.a)")
        #expect(try Self.digest("\(Self.a)  a\\nb\n", "a\\nb") == "sha-256:\(Self.a)", "not escaped")
        #expect(throws: FileError.self) { try Self.digest("\\\(Self.a)  a\\tb\n", "a\\tb") }
        #expect(throws: FileError.self) { try Self.digest("\\\(Self.a)  a\\\n", "a\\") }
    }

    @Test(
        "BSD's and OpenSSL's tags are read, and those of other algorithms passed over",
        arguments: [
            ("SHA256 (x.iso) = \(a)", "sha-256:\(a)"), ("SHA256(x.iso)= \(a)", "sha-256:\(a)"),
            ("SHA2-256(x.iso)= \(a)", "sha-256:\(a)"), ("SHA-256 (dir/x.iso) = \(a) ", "sha-256:\(a)"),
            ("MD5 (x.iso) = \(md5)", "md5:\(md5)"), ("SHA1 (x.iso) = \(sha1)", "sha-1:\(sha1)"),
            ("SHA512 (x.iso) = \(sha512)", "sha-512:\(sha512)"), ("SHA3-256 (x.iso) = \(a)", nil),
            ("SHA512/256 (x.iso) = \(a)", nil), ("BLAKE2b (x.iso) = \(sha512)", nil), ("SHA256 (x.iso) = \(md5)", nil),
            ("SHA2-(x.iso)= \(a)", nil), ("SHA256 x.iso = \(a)", nil), ("SHA256 (x.iso) \(a)", nil),
            ("(x.iso) = \(a)", nil), ("SHA256 (x.iso", nil), (")(", nil),
        ])
    func tagged(line: String, digest: String?) throws {
        #expect((try? Self.digest(line)) == digest)
    }

    @Test("a name with brackets of its own is read to the last one")
    func brackets() throws {
        #expect(try Self.digest("SHA256 (x (1).iso) = \(Self.a)", "x (1).iso") == "sha-256:\(Self.a)")
    }

    @Test("the strongest digest counts where a file has several")
    func strongest() throws {
        let text = "MD5 (x.iso) = \(Self.md5)\nSHA512 (x.iso) = \(Self.sha512)\n\(Self.a)  x.iso\n"
        #expect(try Self.digest(text) == "sha-512:\(Self.sha512)")
    }

    @Test("two different digests for one file are an error at the second; the same one twice is none")
    func ambiguous() throws {
        #expect(throws: fault(2, 1, "has a different digest for \"x.iso\" than an earlier line")) {
            try Self.digest("\(Self.a)  x.iso\n\(Self.b)  ./x.iso\n")
        }
        #expect(try Self.digest("\(Self.a)  x.iso\n\(Self.a.uppercased())  dir/x.iso\n") == "sha-256:\(Self.a)")
    }

    @Test("the last segment is the name; a longer path decides between directories")
    func directories() throws {
        let text = "\(Self.a)  ./netboot/mini.iso\n\(Self.b)  ./netboot/gtk/mini.iso\n"
        #expect(try Self.digest("\(Self.a)  ./a/b//x.iso\n") == "sha-256:\(Self.a)")
        #expect(try Self.digest(text, "/debian/images/netboot/mini.iso") == "sha-256:\(Self.a)")
        #expect(try Self.digest(text, "/netboot/gtk/mini.iso") == "sha-256:\(Self.b.lowercased())")
        #expect(throws: FileError.self) { try Self.digest(text, "mini.iso") }
    }

    @Test("a digest and nothing else is that of any file")
    func bare() throws {
        #expect(try Self.digest("\(Self.a)\n", "whatever") == "sha-256:\(Self.a)")
        #expect(try Self.digest("# made today\r\n\r\n\(Self.md5) \r\n\r\n", "whatever") == "md5:\(Self.md5)")
        for text in [
            "\(Self.a)\n\(Self.a)\n", "\(Self.a)\nx\n", "\(Self.a)\n\(Self.b)  y\n", "\\\(Self.a)\n", "\(Self.a)0\n",
            "",
            "<html>\(Self.a)</html>",
        ] {
            #expect(throws: FileError.self, "\(text)") { try Self.digest(text, "whatever") }
        }
    }

    @Test("the wrapper of a signature is taken off; what stands outside it says nothing")
    func signed() throws {
        let text = """
            \(Self.b)  x.iso
            -----BEGIN PGP SIGNED MESSAGE-----
            Hash: SHA256

            # a comment
            \(Self.a)  x.iso
            - \(Self.a)  -y.iso
            -----BEGIN PGP SIGNATURE-----

            \(Self.b)  x.iso
            -----END PGP SIGNATURE-----
            \(Self.b)  x.iso
            """
        #expect(try Self.digest(text) == "sha-256:\(Self.a)")
        #expect(try Self.digest(text.replacing("\n", with: "\r\n"), "-y.iso") == "sha-256:\(Self.a)")
        let bare = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n\(Self.a)\n-----BEGIN PGP SIGNATURE-----\nx\n"
        #expect(try Self.digest(bare) == "sha-256:\(Self.a)")
        let headersAlone = "-----BEGIN PGP SIGNED MESSAGE-----\n\(Self.a)  x.iso\n"
        #expect(throws: FileError.self) { try Self.digest(headersAlone) }
    }

    @Test("what is too long is refused, and what is no text")
    func limits() throws {
        let line = "\(Self.a)  x.iso\n"
        #expect(throws: FileError.self) { try Self.list(String(repeating: "#", count: (1 << 20) + 1)) }
        #expect(try Self.digest(line + String(repeating: "\n", count: 65_535)) == "sha-256:\(Self.a)")
        #expect(throws: FileError.self) { try Self.list(line + String(repeating: "\n", count: 65_536)) }
        let name = String(repeating: "n", count: 16_384 - 66)
        #expect(try Self.digest("\(Self.a)  \(name)", name) == "sha-256:\(Self.a)")
        #expect(throws: FileError.self) { try Self.digest("\(Self.a)  n\(name)", "n" + name) }
        #expect(throws: fault(1, 1, "is not UTF-8 text; dld reads text files only")) {
            try ChecksumList(parsing: [0xFF, 0x61], file: "f")
        }
    }

    @Test("cut short at any byte, a list is read or refused, and never gives another digest")
    func truncated() throws {
        let text = Array("-----BEGIN PGP SIGNED MESSAGE-----\n\nSHA256 (x.iso) = \(Self.a)\n\\\(Self.a)  a\\nb\n".utf8)
        for count in 0...text.count {
            let list = try ChecksumList(parsing: Array(text[..<count]), file: "f")
            if let checksum = try? list.checksum(for: "x.iso") { #expect(checksum.hex == Self.a) }
        }
    }
}
