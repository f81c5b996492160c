import Testing

@testable import TaskFiles

@Suite("Files with a credential")
struct HostCredentialTests {
    private static let certificate = "-----BEGIN CERTIFICATE-----\n  AAAA\n  -----END CERTIFICATE-----\n"
    private static let key = "-----BEGIN PRIVATE KEY-----\n  AAAA\n  -----END PRIVATE KEY-----\n"
    private static let encryptedKey = key.replacing("PRIVATE", with: "ENCRYPTED PRIVATE")

    private func unindented(_ text: String) -> String { text.replacing("\n  ", with: "\n") }

    @Test("a password, a token, a certificate and a key are read")
    func forms() throws {
        func read(_ text: String) throws -> HostCredential { try HostCredential(parsing: text, file: "f") }
        #expect(try read("{user: ann, password: 'a: b'}") == .password(user: "ann", password: "a: b"))
        #expect(try read("bearer: abc.def-1=\n") == .bearer("abc.def-1="))
        let certificate = unindented(Self.certificate)
        #expect(
            try read("certificate: |\n  \(Self.certificate)key: |\n  \(Self.key)")
                == .certificate(certificate, key: unindented(Self.key), passphrase: nil))
        #expect(
            try read("certificate: |\n  \(Self.certificate)key: |\n  \(Self.encryptedKey)passphrase: p q\n")
                == .certificate(certificate, key: unindented(Self.encryptedKey), passphrase: "p q"))
        // A key without a line end at its end gets one.
        #expect(
            try read("user: ann\nsftp-key: |-\n  \(Self.key)passphrase: p\n")
                == .sshKey(user: "ann", key: unindented(Self.key), passphrase: "p"))
    }

    @Test(
        "what is no credential is refused where it stands, without a word of it",
        arguments: [
            ("", 1, 1, "is empty"), ("hunter2", 1, 1, "must be a mapping"), ("- hunter2", 1, 1, "must be a mapping"),
            ("{user: ann}", 1, 1, "has no \"password\""), ("{password: hunter2}", 1, 1, "has no \"user\""),
            ("user: ann\npassword: hunter2\nbearer: hunter2", 1, 7, "\"user\" does not belong"),
            ("user: ann\nhunter2: x\npassword: p", 2, 1, "is not a key of a credential; the keys are user, password"),
            ("hunter2: 1\nhunter2: 2", 2, 1, "a key is given twice"),
            ("{user: 'a:b', password: hunter2}", 1, 8, "must not contain a colon; the password has a key of its own"),
            ("{user: ann, password: \"hunter2\\n\"}", 1, 23, "without control characters"),
            ("{user: ann, password: ''}", 1, 23, "1 to 4,096 bytes"),
            ("{user: ann, password: [hunter2]}", 1, 23, "must be text"), ("{user: ann, password: }", 1, 23, "no value"),
            ("bearer: hunter 2", 1, 9, "without spaces"),
            ("{bearer: t, passphrase: hunter2}", 1, 25, "does not belong"),
            ("certificate: hunter2\nkey: hunter2", 1, 14, "with its line breaks"),
            ("certificate: |\n  \(certificate)", 1, 1, "has no \"key\""),
            ("certificate: |\n  \(certificate)key: |\n  \(certificate)", 5, 6, "text in PEM"),
            ("certificate: |\n  \(certificate)key: |\n  \(encryptedKey)", 5, 6, "add \"passphrase\""),
            ("{sftp-key: hunter2}", 1, 1, "has no \"user\""), ("*hunter2", 1, 1, "is not YAML"),
            ("bearer: a\n---\nbearer: hunter2", 2, 1, "is not YAML"),
        ])
    func refusals(text: String, line: Int, column: Int, message: String) {
        let error = #expect(throws: FileError.self) { try HostCredential(parsing: text, file: "f") }
        #expect(error?.message.contains(message) == true, "\(String(describing: error))")
        #expect((error?.line, error?.column) == (line, column), "\(String(describing: error))")
        #expect(error?.message.contains("hunter") == false)
    }

    @Test("its description and its mirror have no secret")
    func description() {
        var text = "\(HostCredential.bearer("hunter2"))"
        dump(HostCredential.password(user: "ann", password: "hunter2"), to: &text)
        #expect(!text.contains("hunter2"))
    }

    @Test("a name is that of a file, without a directory")
    func names() {
        for name in ["a", "site.example", "a-b_c@1", "..."] { #expect(HostCredential.isName(name)) }
        for name in ["", ".", "..", "a/b", "/a", "../a", "a:b", "a b", "é", String(repeating: "a", count: 256)] {
            #expect(!HostCredential.isName(name))
        }
    }
}
