import Glibc
import TaskFiles
import TestSupport
import Testing

@testable import dld

@Suite("The files of credentials")
struct CredentialReaderTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        for name in ["passed", "own", "own/dld", "own/dld/credentials"] { try directory.makeDirectory(name) }
    }

    private func reader(passes: Bool = true, isSystem: Bool = false) -> CredentialReader {
        var variables = ["XDG_CONFIG_HOME": directory.file("own")]
        variables["STATE_DIRECTORY"] = isSystem ? "/var/lib/dld" : "/home/u/state"
        if passes { variables["CREDENTIALS_DIRECTORY"] = directory.file("passed") }
        return CredentialReader(environment: ProcessEnvironment(variables: variables, uid: getuid()))
    }

    private func refusal(_ reader: CredentialReader, _ name: String = "a") -> String? {
        do throws(CredentialReader.Failure) {
            _ = try reader.read(name)
            return nil
        } catch {
            return error.reason
        }
    }

    private func write(_ text: String, to name: String, mode: mode_t = 0o600) throws {
        #expect(chmod(try directory.write(text, to: name), mode) == 0)
    }

    @Test("what systemd passes has precedence, whatever its mode; a user's own file is the other place")
    func places() throws {
        try write("bearer: own", to: "own/dld/credentials/a")
        #expect(try reader().read("a") == .bearer("own"))
        try write("bearer: passed", to: "passed/a", mode: 0o444)
        #expect(try reader().read("a") == .bearer("passed"))
        #expect(try reader(passes: false).read("a") == .bearer("own"))
        #expect(try reader(isSystem: true).read("a") == .bearer("passed"))
        #expect(refusal(reader(passes: false, isSystem: true))?.contains("LoadCredential=a:FILE") == true)
        #expect(refusal(reader(isSystem: true), "b")?.contains("add LoadCredential=b:FILE") == true)
        #expect(refusal(reader(), "b")?.contains("own/dld/credentials/b: cannot be opened") == true)
    }

    @Test("a user's file that others can read, and one that is no file, are refused, and the message says what to do")
    func refusals() throws {
        let path = directory.file("own/dld/credentials/a")
        try write("bearer: c4nary", to: "own/dld/credentials/a")
        for mode: mode_t in [0o640, 0o604, 0o601, 0o660] {
            #expect(chmod(path, mode) == 0)
            #expect(refusal(reader())?.contains("run: chmod 600 \(path)") == true)
        }
        #expect(chmod(path, 0o400) == 0 && refusal(reader()) == nil)
        try write(String(repeating: "#", count: 65_537), to: "own/dld/credentials/long")
        #expect(refusal(reader(), "long")?.contains("is longer than 64") == true)
        try write("c4nary", to: "own/dld/credentials/wrong")
        let wrong = refusal(reader(), "wrong")
        #expect(wrong?.contains("/wrong:1:1: must be a mapping") == true && wrong?.contains("c4nary") == false)
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")
        let key = "-----BEGIN PRIVATE KEY-----\n  AAAA\n  -----END PRIVATE KEY-----"
        try write(
            "certificate: |\n  \(begin)\n  AAAA\n  \(end)\nkey: |\n  \(key)\n", to: "own/dld/credentials/certificate")
        #expect(refusal(reader(), "certificate")?.hasSuffix("\"certificate\" contains no readable certificate") == true)
        try directory.makeDirectory("own/dld/credentials/directory")
        #expect(refusal(reader(), "directory")?.contains("is not a regular file") == true)
        #expect(mkfifo(directory.file("own/dld/credentials/pipe"), 0o600) == 0)
        #expect(refusal(reader(), "pipe")?.contains("is a pipe") == true)
        var status = stat()
        (status.st_uid, status.st_mode) = (getuid() + 1, S_IFREG | 0o600)
        let stranger = CredentialReader.refusal(of: status, for: getuid(), at: "f")
        #expect(stranger == "belongs to another user (uid \(getuid() + 1)); run: chown \(getuid()) f")
    }
}
