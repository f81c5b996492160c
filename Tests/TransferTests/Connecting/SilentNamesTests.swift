import Curl
import TestSupport
import Testing

@testable import Transfer

@Suite("Names that nobody answers for")
struct SilentNamesTests {
    private let place: Place
    private let resource = Resource(size: 8 << 20)

    init() throws { place = try Place() }

    @Test("F35: mirrors that nobody answers for hold up no other download's name, and are let go of with their task")
    func mirrors() async throws {
        let release = try WakeUp(counting: true)
        // One signal for each thread that may wait.
        defer { for _ in 0..<64 { release.signal() } }
        let asked = Notes<String>()
        let resolver = Resolver { host in
            guard host.hasSuffix(".silent.test") else { return .success(["127.0.0.1"]) }
            asked.add(host)
            release.wait()
            return .failure(.unavailable)
        }
        let delegate = SessionDelegate()
        let session = try Session(configuration: .test(), delegate: delegate, resolver: resolver)
        let manager = try #require(SessionManager(session: session, delegate: delegate))
        // The port has no listener: the mirror is used instead.
        let gone = try FreePort.next()
        let quick = try ScriptedServer(["/f": [.serve(resource)]])
        let digest = sha256(of: resource)
        let downloads = (0..<80).map { number in
            var request = TransferRequest(url: "http://127.0.0.1:\(gone)/f")
            request.mirrors = ["http://m\(number).silent.test/f"]
            return manager.download(
                request, to: place.target("slow\(number)", part: ".slow\(number).part", digest: digest))
        }
        for download in downloads { download.resume() }
        // The resolver looks up as many of their names as it may at once.
        try await eventually(that: "the mirrors' names are looked up") { asked.all.count >= 16 }
        let file = try await manager.download("http://quick.test:\(quick.port)/f", to: place.target("quick")).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(asked.all.count <= 16)
        for download in downloads { download.cancel() }
        for download in downloads { _ = await download.outcome }
        // Pending lookups have no callers any more, and queued ones are dropped.
        try await eventually(that: "nobody waits for a name") { resolver.openQuestions == 0 }
        #expect(asked.all.count <= 16)
    }
}
