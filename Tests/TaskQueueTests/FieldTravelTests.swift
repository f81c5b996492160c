import ArgumentParser
import FoundationEssentials
import Glibc
import TaskFiles
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskModel
@testable import TaskQueue
@testable import dlctl

/// A walk over the table of fields. Each field goes from the command line, a queue file, an aria2 file and the socket
/// through the store into the request of the engine.
@Suite("Each field of a task on its way")
struct FieldTravelTests {
    /// A value of a field in each of the places where it can be written.
    private struct Sample {
        /// The value in JSON.
        var json: String
        /// The value on the command line and in a queue file; `nil` for a flag that is set.
        var text: String? = "sample"
        /// The lines of an aria2 file.
        var aria2: [String] = []
        /// The other fields that the field needs, as JSON.
        var beside: [String: String] = [:]
        var goal = Goal.request
    }

    /// The place where the value has its effect.
    private enum Goal {
        /// The request of the engine, or the file that the request makes.
        case request
        /// The choice of the scheduler when and whether the task runs, or the admission of the task.
        case queue
    }

    /// The samples of fields that are not a plain text or flag for the engine.
    private static func samples(_ directory: TemporaryDirectory) throws -> [String: Sample] {
        let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
        let netrc = "machine example.org login sample password secret\n"
        let cookies = "example.org\tFALSE\t/\tFALSE\t0\tname\tvalue\n"
        func quoted(_ text: String) throws -> String {
            String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
        }
        let user = ["user": #""me""#]
        return [
            "metalink": Sample(json: "true", text: nil),
            "mirrors": Sample(json: #"["http://mirror.example.org/a"]"#, text: "http://mirror.example.org/a"),
            "directory": Sample(json: #""sample""#, aria2: ["dir=sample"]),
            "output": Sample(json: #""sample""#, aria2: ["out=sample"]),
            "checksum": Sample(
                json: #""md5:00000000000000000000000000000000""#, text: "md5:00000000000000000000000000000000",
                aria2: ["checksum=md5=00000000000000000000000000000000"]),
            "checksumURL": Sample(json: #""http://example.org/SUMS""#, text: "http://example.org/SUMS"),
            "connections": Sample(json: "3", text: "3", aria2: ["split=3", "max-connection-per-server=3"]),
            "maxSize": Sample(json: "4096", text: "4K"),
            "onConflict": Sample(json: #""overwrite""#, text: "overwrite", aria2: ["allow-overwrite=true"]),
            "nameFrom": Sample(json: #""final""#, text: "final"),
            "update": Sample(json: "true", text: nil, aria2: ["conditional-get=true"]),
            "noMtime": Sample(json: "true", text: nil, aria2: ["remote-time=false"]),
            "shared": Sample(json: "true", text: nil, goal: .queue),
            "method": Sample(json: #""POST""#, text: "POST"),
            "form": Sample(json: #"["a=sample"]"#, text: "a=sample"),
            "headers": Sample(json: #"["A: sample"]"#, text: "A: sample", aria2: ["header=A: sample"]),
            "user": Sample(json: #""sample""#, aria2: ["http-user=sample"]),
            "password": Sample(
                json: #""sample""#, text: try directory.write("sample\n", to: "password"),
                aria2: ["http-user=me", "http-passwd=sample"], beside: user),
            "cookies": Sample(json: try quoted(cookies), text: try directory.write(cookies, to: "cookies")),
            "netrc": Sample(json: try quoted(netrc), text: try directory.write(netrc, to: "netrc")),
            "caCertificates": Sample(
                json: try quoted(certificate), text: try directory.write(certificate, to: "certificates")),
            "referer": Sample(
                json: #""http://me:secret@example.org/""#, text: "http://me:secret@example.org/",
                aria2: ["referer=http://me:secret@example.org/"]),
            "proxy": Sample(
                json: #""http://proxy.example.org:3128""#, text: "http://proxy.example.org:3128",
                aria2: ["all-proxy=http://proxy.example.org:3128"]),
            "priority": Sample(json: #""low""#, text: "low", goal: .queue),
            "now": Sample(json: "true", text: nil, goal: .queue),
            "limit": Sample(json: "2048", text: "2K", aria2: ["max-download-limit=2K"]),
            "connectTimeout": Sample(json: "10000", text: "10s"),
            "stallTimeout": Sample(json: "90000", text: "1.5m"),
            "maxAttempts": Sample(json: "30", text: "30", goal: .queue),
            "startAt": Sample(json: "4102444800000", text: "2100-01-01T00:00Z", goal: .queue),
            "afterTask": Sample(json: "7", text: "7", goal: .queue),
            "batch": Sample(json: #""sample""#, goal: .queue),
            "key": Sample(
                json: #""0123456789abcdef""#, text: "0123456789abcdef", aria2: ["gid=0123456789abcdef"], goal: .queue),
            "paused": Sample(json: "true", text: nil, aria2: ["pause=true"], goal: .queue),
        ]
    }

    private static func sample(_ field: TaskField, _ directory: TemporaryDirectory) throws -> Sample {
        if let sample = try samples(directory)[field.name] { return sample }
        if case .flag = field.syntax { return Sample(json: "true", text: nil) }
        var sample = Sample(json: #""sample""#)
        if case .option(let name) = field.aria2 { sample.aria2 = ["\(name)=sample"] }
        return sample
    }

    /// The fields that people write, beside the URL and the file, which each task has.
    private static let fields = TaskField.all.filter { $0.option != nil }

    private static let url = "http://example.org/a"

    /// Returns the task with the field as the socket delivers it.
    private static func task(_ field: TaskField?, _ sample: Sample?, _ source: String) throws -> TaskSpecification {
        var fields = sample?.beside ?? [:]
        fields["url"] = "\"\(url)\""
        if field?.kinds.only == .upload {
            fields["kind"] = #""upload""#
            fields["file"] = "\"\(source)\""
        }
        if let field, let sample { fields[field.name] = sample.json }
        let json = "{" + fields.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
        return try JSONDecoder().decode(TaskSpecification.self, from: Data(json.utf8))
    }

    private static func source(in directory: TemporaryDirectory) throws -> String {
        try directory.write("content", to: "source")
    }

    // MARK: - Ways in

    @Test("each field that people write differs from its default, and passes the check", arguments: fields)
    func differs(field: TaskField) throws {
        let directory = try TemporaryDirectory()
        let source = try Self.source(in: directory)
        let task = try Self.task(field, try Self.sample(field, directory), source)
        try task.check()
        #expect(try Self.task(field, nil, source) != task)
    }

    @Test("the command line", arguments: fields)
    func commandLine(field: TaskField) throws {
        let directory = try TemporaryDirectory()
        let source = try Self.source(in: directory)
        let sample = try Self.sample(field, directory)
        var words = ["--" + field.word] + [sample.text].compactMap(\.self)
        for name in sample.beside.keys { words += ["--" + name, "me"] }
        var input = InputText()
        let isUpload = field.kinds.only == .upload
        let arguments = isUpload ? ["upload"] + words + [source, Self.url] : ["add"] + words + [Self.url]
        let parsed = try RootCommand.parseAsRoot(arguments)
        var task: TaskSpecification
        if isUpload {
            task = try #require(parsed as? Upload).resolve(&input)
            task.file = source
        } else {
            task = try #require(parsed as? Add).resolve(&input)
        }
        task.url = Self.url
        #expect(try Self.task(field, sample, source) == task)
    }

    @Test("a queue file", arguments: fields.filter { $0.key != nil })
    func queueFile(field: TaskField) throws {
        let directory = try TemporaryDirectory()
        let source = try Self.source(in: directory)
        let sample = try Self.sample(field, directory)
        let isUpload = field.kinds.only == .upload
        var lines = [isUpload ? "uploads:" : "downloads:", "  - url: \(Self.url)"]
        if isUpload { lines.append("    file: \(source)") }
        lines.append("    \(field.word): \(sample.text.map { "'\($0)'" } ?? "true")")
        for name in sample.beside.keys { lines.append("    \(name): me") }
        let file = try QueueFile(
            parsing: lines.joined(separator: "\n"), file: "f", baseDirectory: "/", now: 0, utcOffset: { _ in 0 },
            readFile: { path, limit throws(UnreadableFile) in try InputText.file(path, limit: limit) })
        #expect(file.entries.map(\.specification) == [try Self.task(field, sample, source)])
    }

    @Test("an aria2 file", arguments: fields.filter { $0.aria2 != nil })
    func aria2File(field: TaskField) throws {
        let directory = try TemporaryDirectory()
        let sample = try Self.sample(field, directory)
        #expect(!sample.aria2.isEmpty, "a sample is missing")
        let text = ([Self.url] + sample.aria2.map { " " + $0 }).joined(separator: "\n") + "\n"
        let input = try Aria2Input(parsing: Array(text.utf8), file: "f")
        #expect(input.entries.map(\.specification) == [try Self.task(field, sample, "")])
        #expect(input.notes.isEmpty)
    }

    // MARK: - The way out

    @Test("the JSON of the task and of its secrets", arguments: TaskField.all)
    func stored(field: TaskField) throws {
        let directory = try TemporaryDirectory()
        var values = UnpackedTask(TaskSpecification(url: "http://me:secret@example.org/a"))
        if TaskField.ofDaemon.contains(where: { $0.name == field.name }) {
            values.details.groups = [7]
            values.details.passedSource = "sample"
        } else if field.option != nil {
            let source = try Self.source(in: directory)
            values = UnpackedTask(try Self.task(field, try Self.sample(field, directory), source))
        }
        let task = values.packed
        var shown = task
        let secrets = shown.takeSecrets(redactedURL: TaskSpecification.redact(task.url))
        let json = try JSONEncoder().encode(shown)
        var restored = try JSONDecoder().decode(TaskSpecification.self, from: json)
        if field.secrecy == .value {
            #expect(!shown.setFields.contains(field))
            #expect(!String(decoding: json, as: UTF8.self).contains("sample"))
        }
        #expect(!String(decoding: json, as: UTF8.self).contains("secret"))
        restored.restore(try JSONDecoder().decode(TaskSecrets.self, from: JSONEncoder().encode(secrets)))
        #expect(restored == task)
    }

    @Test("the engine's request, or the queue", arguments: fields)
    func request(field: TaskField) async throws {
        let fixture = try await QueueFixture()
        let source = try Self.source(in: fixture.directory)
        let sample = try Self.sample(field, fixture.directory)
        let task = try Self.task(field, sample, source)
        var plain = try Self.task(field, nil, source)
        if !sample.beside.isEmpty { plain.user = task.user }
        switch sample.goal {
        case .request:
            #expect(
                try await Self.shape(of: task, in: fixture) != Self.shape(of: plain, in: fixture), "\(field.name)")
        case .queue:
            // The record keeps the value; tests of the queue show its effect.
            #expect(try Self.admission(of: task, in: fixture) != Self.admission(of: plain, in: fixture))
        }
    }

    /// Returns all that the queue keeps of a task.
    private static func admission(of task: TaskSpecification, in fixture: QueueFixture) throws -> String {
        var settings = fixture.settings
        settings.layout = .perUser
        var admission = Admission(settings: settings, caller: QueueFixture.me, now: 0)
        var text = ""
        dump(try admission.admit(task), to: &text)
        return text
    }

    /// Returns all that the engine gets for a task.
    private static func shape(of task: TaskSpecification, in fixture: QueueFixture) async throws -> String {
        var paused = task
        paused.paused = true
        let caller = Caller(uid: getuid(), isAdministrator: true)
        let ids = try await fixture.queue.add([paused], by: caller)
        let id = try #require(ids.first)
        let work = try #require(try fixture.store.work(for: id))
        let manager = try SessionManager(startRequestsImmediately: false)
        var maker = RequestMaker(
            manager: manager, settings: fixture.settings, store: fixture.store, now: 0)
        var text = ""
        switch try maker.make(work) {
        case .download(let request):
            text = describe(request.original)
            var specification = work.record.specification
            specification.restore(work.secrets)
            let directory = try Directory.open(root: fixture.downloads)
            let resource = ResourceMetadata(redirectedFileName: "redirected", lastModified: 9)
            let naming = DownloadNaming(specification: specification, settings: fixture.settings)
            dump(try naming.destination(resource, in: directory, known: nil), to: &text)
            text += work.record.path ?? ""
        case .upload(let upload):
            text = describe(upload.request.original)
        case .lookup: text = "lookup"
        case .done: text = "done"
        }
        return text
    }

    /// Returns the values of a request, also those that descriptions hide.
    private static func describe(_ request: TransferRequest?) -> String {
        var text = ""
        dump(request, to: &text)
        dump(request?.headerFields, to: &text)
        dump([request?.credential?.user, request?.credential?.password], to: &text)
        dump(request?.cookies?.cookies, to: &text)
        dump([request?.url, request?.proxy, request?.caCertificates], to: &text)
        dump([request?.leavesFailingSource, request?.checksDestinationFirst], to: &text)
        return text
    }
}
