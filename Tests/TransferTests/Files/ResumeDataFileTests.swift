import FoundationEssentials
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Checkpoints, and resume data in a file")
struct ResumeDataFileTests {
    private let place: TemporaryDirectory
    private let resource = Resource(size: 6 << 20)

    init() throws { place = try TemporaryDirectory() }

    private func manager(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> SessionManager {
        var configuration = SessionConfiguration.test()
        configuration.checkpointInterval = 256 << 10
        change(&configuration)
        return try SessionManager(configuration: configuration)
    }

    private var file: ResumeDataFile { ResumeDataFile(path: place.file("note")) }

    @Test("the last checkpoint is kept before the request is complete, and none overlaps another")
    func order() async throws {
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 12 << 20)]])
        let manager = try manager()
        for number in 0..<5 {
            let events = Notes<String>()
            _ = try await manager.download(server.url("/f"), to: place.file("f\(number)")).onCheckpoint { _ in
                events.add("begin")
                await Task.yield()
                events.add("end")
            }.value
            let all = events.all
            #expect(!all.isEmpty && all.count.isMultiple(of: 2))
            #expect(all.enumerated().allSatisfy { $0.element == ($0.offset.isMultiple(of: 2) ? "begin" : "end") })
            try await Task.sleep(for: .milliseconds(20))
            #expect(events.all.count == all.count, "a checkpoint was kept after the end")
        }
    }

    @Test("a failed keeping is repeated, so that a limit for checkpoints does not stop the download")
    func failedKeeping() async throws {
        struct Full: Error {}
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try manager { $0.checkpointLimit = 1 << 20 }
        let calls = Atomic<Int>(0)
        let file = try await manager.download(server.url("/f"), to: place.file("f")).onCheckpoint { _ in
            if calls.wrappingAdd(1, ordering: .relaxed).newValue == 1 { throw Full() }
        }.value
        #expect(file.size == resource.size)
        let count = calls.load(ordering: .relaxed)
        #expect(count > 1)
    }

    @Test("a successful download leaves no file, and a failed one a file that resumes it")
    func kept() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 2 << 20), .serve(resource)]])
        let manager = try manager()
        let request = TransferRequest(url: server.url("/f"))
        let broken = await manager.download(request, to: place.file("f"), resumeDataFile: file).outcome
        #expect(broken.error != nil)
        #expect(try file.load() == broken.resumeData)
        let done = try await manager.download(request, to: place.file("f"), resumeDataFile: file).value
        #expect(try bytes(ofFileAt: done.path) == resource.bytes(0..<resource.size))
        #expect(server.requests().last?.header("range") != nil)
        #expect(TemporaryDirectory.names(beneath: place.path) == ["f"])
    }

    @Test("a digest, a path and a file of resume data are given in one call", arguments: [true, false])
    func verified(isRight: Bool) async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 2 << 20), .serve(resource)]])
        let (manager, url) = (try manager(), server.url("/f"))
        let digest = isRight ? sha256(of: resource) : .sha256(String(repeating: "0", count: 64))
        let broken = await manager.download(url, to: place.file("f"), digest: digest, resumeDataFile: file).outcome
        #expect(broken.error != nil && broken.resumeData != nil)
        let done = await manager.download(url, to: place.file("f"), digest: digest, resumeDataFile: file).outcome
        #expect(server.requests().last?.header("range") != nil)
        if isRight {
            #expect(done.file?.isVerified == true)
            #expect(TemporaryDirectory.names(beneath: place.path) == ["f"])
        } else {
            #expect(done.error?.code == .checksumMismatch)
            #expect(!TemporaryDirectory.names(beneath: place.path).contains("f"))
        }
    }

    @Test("during a download the file is renewed at each checkpoint")
    func renewed() async throws {
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 3 << 20)], "/g": [.drip(resource, after: 3 << 20, bytesPerSecond: 1)],
        ])
        let manager = try manager()
        let request = manager.download(server.url("/g"), to: place.file("f"), resumeDataFile: file).resume()
        let kept = try await eventually(have: "resume data of 2 MiB") {
            try file.load().flatMap { $0.ranges.count >= 2 << 20 ? $0 : nil }
        }
        #expect(kept.isSelfSufficient)
        request.cancel(keepingBytes: false)
        _ = await request.outcome
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
    }

    @Test("a crash before the first interval leaves resume data that name the part file")
    func earlyCrash() async throws {
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 1 << 20), .serve(resource)]])
        let manager = try manager { $0.checkpointInterval = 1 << 30 }
        let request = manager.download(server.url("/f"), to: place.file("f"), resumeDataFile: file).resume()
        try await eventually(that: "resume data are kept") { try file.load() != nil }
        let kept = try #require(try file.load())
        request.cancel()
        _ = await request.outcome
        // As a crash would leave them.
        try file.store(kept)
        _ = try await manager.download(server.url("/f"), to: place.file("f"), resumeDataFile: file).value
        #expect(TemporaryDirectory.names(beneath: place.path) == ["f"])
    }

    @Test("a download fails if the file of its resume data cannot be written", arguments: [nil, 1 << 20] as [Int64?])
    func unwritable(limit: Int64?) async throws {
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 1 << 20), .serve(resource)]])
        let manager = try manager { $0.checkpointLimit = limit }
        let absent = ResumeDataFile(path: place.file("absent/note"))
        let request = manager.download(server.url("/f"), to: place.file("f"), resumeDataFile: absent)
        let error = try #require(await request.outcome.error)
        #expect(error.message.hasPrefix("cannot create \(absent.path).new: "), "\(error)")
        #expect(!request.isCancelled && error.resumeData == nil)
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
        // Another attempt begins anew.
        try FileManager.default.createDirectory(atPath: place.file("absent"), withIntermediateDirectories: true)
        #expect(request.retry())
        #expect(try await request.value.size == resource.size)
    }

    @Test("a download that is cancelled has its resume data in the file when its result is there")
    func cancelled() async throws {
        let server = try ScriptedServer(["/f": [.drip(resource, after: 3 << 20, bytesPerSecond: 1), .serve(resource)]])
        let (manager, url) = (try manager(), server.url("/f"))
        let request = manager.download(url, to: place.file("f"), resumeDataFile: file).resume()
        try await eventually(that: "3 MiB are there") { request.progress.completedBytes >= 3 << 20 }
        request.cancel()
        let outcome = await request.outcome
        #expect(outcome.error?.code == .cancelled && outcome.resumeData != nil)
        #expect(try file.load() == outcome.resumeData)
        let again = manager.download(url, to: place.file("f"), resumeDataFile: file)
        #expect(try bytes(ofFileAt: try await again.value.path) == resource.bytes(0..<resource.size))
        #expect(server.requests().last?.header("range") != nil)
    }

    @Test("resume data of another URL are not used, and their part file is removed")
    func otherURL() async throws {
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 2 << 20)], "/g": [.status(200, body: "other")],
        ])
        let manager = try manager()
        _ = await manager.download(server.url("/f"), to: place.file("f"), resumeDataFile: file).outcome
        let other = try await manager.download(server.url("/g"), to: place.file("g"), resumeDataFile: file).value
        #expect(try bytes(ofFileAt: other.path) == Array("other".utf8))
        #expect(TemporaryDirectory.names(beneath: place.path) == ["g"])
    }

    @Test("the file and what a crash left of a newer one are removed", arguments: [[""], [".new"], ["", ".new"], []])
    func removed(endings: [String]) throws {
        for ending in endings { try Data("resume data".utf8).write(to: URL(filePath: file.path + ending)) }
        try file.remove()
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
    }

    @Test("a file without resume data counts as none", arguments: ["", "{}", "not JSON"])
    func otherContents(text: String) throws {
        try place.write(text, to: "note")
        #expect(try file.load() == nil)
        try file.remove()
        try file.remove()
        #expect(try file.load() == nil)
        #expect(throws: TransferError.self) { try ResumeDataFile(path: place.path).load() }
    }
}
