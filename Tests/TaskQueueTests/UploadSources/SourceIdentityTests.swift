import FoundationEssentials
import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("What is kept of a source")
struct SourceIdentityTests {
    private let directory: TemporaryDirectory
    private let source: UploadSource
    private let specification: TaskSpecification

    init() throws {
        directory = try TemporaryDirectory()
        let path = try directory.write("a", to: "a")
        source = try UploadSource(path: path)
        var specification = TaskSpecification(kind: .upload, url: "http://h/a?token=REDACTED")
        specification.file = path
        self.specification = specification
    }

    private func kept(_ change: (inout String) -> Void = { _ in }, boot: String = SourceIdentity.thisBoot)
        -> SourceIdentity?
    {
        let identity = SourceIdentity(of: source, for: specification, boot: boot)
        var text = String(decoding: identity.bytes, as: UTF8.self)
        change(&text)
        return SourceIdentity(bytes: Array(text.utf8), for: specification)
    }

    private func onAnotherDevice(_ text: inout String) {
        text = text.replacing("\"device\":", with: "\"device\":9")
    }

    @Test("it comes back as it went, for the same upload alone")
    func roundTrip() throws {
        let identity = SourceIdentity(of: source, for: specification)
        #expect(SourceIdentity(bytes: identity.bytes, for: specification) == identity)
        try identity.check(source)
        var other = specification
        other.url = "http://h/b"
        #expect(SourceIdentity(bytes: identity.bytes, for: other) == nil)
        other = specification
        other.file = "/b"
        #expect(SourceIdentity(bytes: identity.bytes, for: other) == nil)
    }

    @Test("what is of another form says nothing")
    func garbage() {
        #expect(kept { $0 = "" } == nil && kept { $0 = "{}" } == nil)
        #expect(kept { $0 = $0.replacing("\"form\":1", with: "\"form\":2") } == nil)
        #expect(kept { _ in } != nil)
    }

    @Test("the file system's number counts until the machine starts anew")
    func device() throws {
        #expect(!SourceIdentity.thisBoot.isEmpty)
        let moved = try #require(kept(onAnotherDevice))
        let error = #expect(throws: TransferError.self) { try moved.check(source) }
        #expect(error?.code == .sourceChanged)
        try #require(kept(onAnotherDevice, boot: "another")).check(source)
        let other = try UploadSource(path: directory.write("b", to: "b"))
        #expect(throws: TransferError.self) { try #require(kept(boot: "another")).check(other) }
    }
}
