import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Parts that another process is at work on")
struct PartLockTests {
    private let place: Place

    init() throws { place = try Place() }

    private var path: String { place.directory.path(of: Place.partName) }

    /// Returns another process that holds the lock on the part file, once it is locked.
    private func holder() async throws -> ChildProcess {
        let process = try ChildProcess(["flock", "--no-fork", path, "sleep", "600"])
        try await eventually(that: "the part is locked") {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            defer { close(descriptor) }
            return flock(descriptor, LOCK_EX | LOCK_NB) != 0
        }
        return process
    }

    private func expectInUse(by process: ChildProcess, _ body: () throws -> Void) {
        let error = #expect(throws: TransferError.self) { try body() }
        #expect(error?.code == .partInUse)
        #expect(error?.message.contains("process \(process.pid) ") == true && error?.message.contains(path) == true)
    }

    private func made() throws -> ResumeData {
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        try Array("0123456789".utf8).withUnsafeBytes { try part.write($0, at: 0) }
        return ResumeData(
            generation: part.generation, resource: "r", ranges: try part.synchronize(), version: ResourceVersion())
    }

    @Test("A32: such a part is neither opened, made anew nor removed, and the error names the process")
    func held() async throws {
        let data = try made()
        let process = try await holder()
        expectInUse(by: process) {
            _ = try PartFile.reopen(in: place.directory, name: Place.partName, resumeData: data)
        }
        expectInUse(by: process) { _ = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1") }
        expectInUse(by: process) { _ = try place.directory.removePart(Place.partName) }
        expectInUse(by: process) { try PartLock.checkFree(Place.partName, in: place.directory) }
        process.end()
        #expect(try PartFile.reopen(in: place.directory, name: Place.partName, resumeData: data) != nil)
        #expect(try place.directory.removePart(Place.partName))
    }

    @Test("a part is locked for as long as it is open, and the runs of one process share its lock")
    func shared() async throws {
        let data = try made()
        var first = try PartFile.reopen(in: place.directory, name: Place.partName, resumeData: data)
        var second = try PartFile.reopen(in: place.directory, name: Place.partName, resumeData: data)
        #expect(first != nil && second != nil)
        let isFree = ["flock", "--nonblock", path, "true"]
        #expect(try await run(isFree).succeeded == false)
        first = nil
        #expect(try await run(isFree).succeeded == false, "the other run is under way")
        second = nil
        #expect(try await run(isFree).succeeded)
        #expect(first == nil && second == nil)
    }

    @Test("where there is no part, there is nothing to wait for")
    func absent() throws {
        try PartLock.checkFree(Place.partName, in: place.directory)
    }
}
