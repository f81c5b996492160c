import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Who asks")
struct TaskLoginTests {
    private let directory: TemporaryDirectory
    private let key: String

    init() throws {
        directory = try TemporaryDirectory()
        try directory.makeDirectory("home/.ssh")
        key = try directory.write("key", to: "home/.ssh/id_ed25519")
    }

    private func credential(
        _ url: String, user: String? = nil, password: String? = nil, owner: UInt32 = 500
    ) -> Credential? {
        var settings = QueueFixture.settings(downloads: directory.path) { $0.daemonUser = 500 }
        settings.sshKeys = TaskLogin.keys(beneath: directory.file("home"))
        var specification = TaskSpecification(url: url)
        (specification.user, specification.password) = (user, password)
        return TaskLogin(settings: settings, owner: owner).credential(of: specification)
    }

    @Test("without a password the daemon's user, and root, enter an SFTP server by the key in the home")
    func byKey() {
        let expected = Credential.privateKey(user: "me", path: key)
        for owner: UInt32 in [500, 0] {
            #expect(credential("sftp://h/a", user: "me", owner: owner) == expected)
            #expect(credential("sftp://me@h/a", owner: owner) == expected)
            #expect(credential("sftp://other:p@h/a", user: "me", owner: owner) == expected)
        }
    }

    @Test("nobody else does, and nowhere else")
    func byPassword() {
        #expect(credential("sftp://h/a", user: "me", owner: 7) == Credential(user: "me", password: ""))
        #expect(credential("sftp://me@h/a", owner: 7) == nil)
        #expect(credential("sftp://h/a", user: "me", password: "p") == Credential(user: "me", password: "p"))
        #expect(credential("sftp://me:p@h/a") == nil)
        #expect(credential("sftp://h/a") == nil)
        #expect(credential("ftp://me@h/a") == nil)
        #expect(credential("ftp://h/a", user: "me") == Credential(user: "me", password: ""))
        #expect(credential("https://h/a", user: "me") == Credential(user: "me", password: ""))
    }

    @Test("a home without keys has none to try")
    func noKey() throws {
        #expect(TaskLogin.keys(beneath: nil).isEmpty)
        #expect(AccountNames.home(of: 0) != nil && AccountNames.home(of: 4_294_967_290) == nil)
    }
}
