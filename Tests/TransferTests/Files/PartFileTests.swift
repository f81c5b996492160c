import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Part files")
struct PartFileTests {
    private let place: Place

    init() throws { place = try Place() }

    private func make(_ text: String = "0123456789") throws -> PartFile {
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        try write(text, to: part, at: 0)
        return part
    }

    private func write(_ text: String, to part: PartFile, at offset: Int64) throws {
        try Array(text.utf8).withUnsafeBytes { try part.write($0, at: offset) }
    }

    private func resumeData(_ part: PartFile, _ ranges: ByteRangeSet? = nil) throws -> ResumeData {
        ResumeData(
            generation: part.generation, resource: "r", ranges: try ranges ?? part.synchronize(),
            version: ResourceVersion())
    }

    private func reopen(_ data: ResumeData) throws -> PartFile? {
        try PartFile.reopen(in: place.directory, name: Place.partName, resumeData: data)
    }

    @Test("a part is its owner's alone")
    func permissions() throws {
        _ = try make()
        #expect(try place.status(of: Place.partName).st_mode == S_IFREG | 0o600)
    }

    @Test("what was written and synced is found again; what was only written is not counted")
    func ranges() throws {
        let part = try make()
        #expect(part.unsynced == 10)
        #expect(part.durable.ranges.isEmpty)
        let data = try resumeData(part)
        #expect(data.ranges.ranges == [0..<10])
        #expect(part.unsynced == 0)
        try write("abc", to: part, at: 10)
        #expect(part.unsynced == 3)
        #expect(part.durable.ranges == [0..<10])
        let again = try #require(try reopen(data))
        #expect(again.durable.ranges == [0..<10])
        #expect(try again.synchronize().ranges == [0..<10])
    }

    @Test("blocks that bypass the page cache are in the file like others, whatever their places and lengths")
    func uncached() throws {
        let part = try make("")
        // Not on every file system; the blocks are written otherwise there.
        _ = part.beginUncachedWrites()
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 12_288, alignment: 4096)
        defer { space.deallocate() }
        for index in space.indices { space[index] = UInt8(truncatingIfNeeded: index % 251) }
        let run = part.beginRun(at: 0)
        // Aligned; with a rest that is not; at a place that is not; aligned again.
        for count in [8192, 5000, 12_288 - 904, 4096] {
            try part.writeUncached(UnsafeRawBufferPointer(rebasing: space[..<count]), to: run)
        }
        let isModified = try part.wasModified()
        #expect(!isModified)
        part.end(run)
        #expect(run.end == 28_672 && part.unsynced == 28_672)
        part.endUncachedWrites()
        let contents = try place.content(of: Place.partName)
        let expected = [8192, 5000, 12_288 - 904, 4096].flatMap { Array(space[..<$0]) }
        #expect(contents == expected)
        #expect(try part.synchronize().ranges == [0..<28_672])
    }

    @Test("a block that the file system refuses to write without the page cache is written with it")
    func refusedUncached() throws {
        let part = try make("")
        _ = part.beginUncachedWrites()
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 12_288, alignment: 4096)
        defer { space.deallocate() }
        space.initializeMemory(as: UInt8.self, repeating: 7)
        let run = part.beginRun(at: 0)
        // No disk takes memory at such an address.
        try part.writeUncached(UnsafeRawBufferPointer(rebasing: space[1..<8193]), to: run)
        try part.writeUncached(UnsafeRawBufferPointer(rebasing: space[..<4096]), to: run)
        #expect(run.end == 12_288)
        #expect(try place.content(of: Place.partName) == [UInt8](repeating: 7, count: 12_288))
        #expect(!part.beginUncachedWrites() || part.unsynced == 12_288)
        let isModified = try part.wasModified()
        #expect(!isModified)
    }

    @Test("while blocks bypass the page cache, another process that has written is noticed once")
    func otherWriter() throws {
        let part = try make("0123456789")
        guard part.beginUncachedWrites() else { return }
        func meddle() throws {
            let descriptor = open(place.temporary.file(Place.partName), O_WRONLY | O_CLOEXEC)
            defer { close(descriptor) }
            try #require(pwrite(descriptor, "x", 1, 3) == 1)
        }
        try meddle()
        // As a write of this process would do that was under way at the same time.
        part.recordChange()
        let first = try part.wasModified()
        let second = try part.wasModified()
        #expect(first && !second)
        try meddle()
        part.endUncachedWrites()
        part.recordChange()
        let third = try part.wasModified()
        #expect(third)
        // This process closes its own descriptor.
        let isPossible = part.beginUncachedWrites()
        part.endUncachedWrites()
        let fourth = try part.wasModified()
        #expect(isPossible && !fourth)
    }

    @Test("blocks of a run that was forgotten do not count, also those written afterwards")
    func forgottenRun() throws {
        let part = try make("0123456789")
        let run = part.beginRun(at: 20)
        try Array("abc".utf8).withUnsafeBytes { try part.write($0, to: run) }
        part.forget(behind: 10)
        try Array("def".utf8).withUnsafeBytes { try part.write($0, to: run) }
        part.end(run)
        #expect(try part.synchronize().ranges == [0..<10])
    }

    @Test("a run before the bytes that are forgotten counts, also what is written to it afterwards")
    func rememberedRun() throws {
        let part = try make("")
        let run = part.beginRun(at: 0)
        try Array("abc".utf8).withUnsafeBytes { try part.write($0, to: run) }
        part.forget(behind: 6)
        try Array("def".utf8).withUnsafeBytes { try part.write($0, to: run) }
        part.end(run)
        #expect(try part.synchronize().ranges == [0..<6])
    }

    @Test("blocks in order, back to an earlier place and beyond a gap count as what they cover")
    func runs() throws {
        let part = try make("0123456789")
        try write("abc", to: part, at: 10)
        try write("x", to: part, at: 2)
        #expect(part.unsynced == 13)
        try write("y", to: part, at: 3)
        try write("end", to: part, at: 20)
        #expect(part.unsynced == 16)
        #expect(try part.synchronize() == ByteRangeSet([0..<13, 20..<23]))
        #expect(part.unsynced == 0)
        try write("f", to: part, at: 23)
        #expect(part.unsynced == 1)
        #expect(part.durable == ByteRangeSet([0..<13, 20..<23]))
        #expect(try part.synchronize() == ByteRangeSet([0..<13, 20..<24]))
    }

    @Test("what is on disk leaves the page cache when told to; what is not stays, and every byte with it")
    func pageCache() throws {
        let bytes = [UInt8](repeating: 7, count: 4 << 20)
        let part = try make()
        try bytes.withUnsafeBytes { try part.write($0, at: 0) }
        #expect(try cachedBytes(of: part) == bytes.count)
        let data = try resumeData(part)
        part.leavePageCache()
        // On tmpfs the page cache is the storage itself.
        if try isOnDevice(part) { #expect(try cachedBytes(of: part) == 0) }
        #expect(try #require(try reopen(data)).durable.count == Int64(bytes.count))
        var found = [UInt8](repeating: 0, count: bytes.count)
        #expect(try found.withUnsafeMutableBytes { try part.descriptor.read(into: $0, at: 0) } == bytes.count)
        #expect(found == bytes)
    }

    private func cachedBytes(of part: PartFile) throws -> Int {
        let count = Int(try part.descriptor.status().st_size)
        let memory = mmap(nil, count, PROT_READ, MAP_SHARED, part.descriptor.raw, 0)
        let start = try #require(memory == MAP_FAILED ? nil : memory)
        defer { munmap(start, count) }
        let page = Int(getpagesize())
        var pages = [UInt8](repeating: 0, count: (count + page - 1) / page)
        try #require(mincore(start, count, &pages) == 0)
        return pages.count { $0 & 1 == 1 } * page
    }

    /// Returns whether the file system has a device: those without one have the major number 0.
    private func isOnDevice(_ part: PartFile) throws -> Bool {
        try part.descriptor.status().st_dev >> 8 != 0
    }

    @Test("a part that is shorter than its resume data say is not trusted")
    func truncated() throws {
        let part = try make()
        let data = try resumeData(part)
        try part.truncate(to: 9)
        #expect(try reopen(data) == nil)
        try part.truncate(to: 10)
        #expect(try reopen(data) != nil)
    }

    @Test("a part of another generation is not trusted, though it is long enough")
    func generation() throws {
        let data = try resumeData(make())
        let newer = try make("ABCDEFGHIJKLMN")
        #expect(newer.generation != data.generation)
        #expect(try reopen(data) == nil)
        #expect(try reopen(resumeData(newer)) != nil)
    }

    @Test("no part, or resume data without ranges, is none")
    func absent() throws {
        let part = try make()
        #expect(try reopen(resumeData(part, ByteRangeSet())) == nil)
        let data = try resumeData(part)
        try place.directory.remove(Place.partName)
        #expect(try reopen(data) == nil)
    }

    @Test("F67: a part that was left and changed since counts no more; without the note it does, as after a crash")
    func left() throws {
        let part = try make()
        let data = try resumeData(part)
        part.recordState()
        #expect(try reopen(data) != nil)
        // Reopened, the part file is written to.
        try write("X", to: part, at: 3)
        #expect(try reopen(data) != nil)
        part.recordState()
        // The time is set explicitly, because the kernel's file timestamps advance only every few milliseconds.
        var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_000_000, tv_nsec: 5)]
        #expect(futimens(part.descriptor.raw, &times) == 0)
        #expect(try reopen(data) == nil)
    }

    @Test("F67: what someone else writes into a part is told from our own writes")
    func meddledWith() throws {
        let part = try make()
        try write("X", to: part, at: 3)
        #expect(try !part.check(holds: 1).wasModified)
        var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_000_000, tv_nsec: 5)]
        #expect(futimens(part.descriptor.raw, &times) == 0)
        #expect(try part.check(holds: 1).wasModified)
        part.recordChange()
        #expect(try !part.check(holds: 1).wasModified)
    }

    @Test("F67: a part whose mark is gone is another file")
    func unmarked() throws {
        let data = try resumeData(make())
        let path = place.temporary.file(Place.partName)
        let bytes = try place.content(of: Place.partName)
        try place.directory.remove(Place.partName)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        #expect(bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } == bytes.count)
        #expect(try reopen(data) == nil)
    }

    @Test("A4: a file with a second name may be written elsewhere too: it is not trusted")
    func hardLink() throws {
        let data = try resumeData(make())
        link(place.temporary.file(Place.partName), place.temporary.file("other"))
        #expect(try reopen(data) == nil)
        try place.directory.remove("other")
        #expect(try reopen(data) != nil)
    }

    @Test("A3: a link in a part's place is neither followed nor in the way")
    func symbolicLink() throws {
        let data = try resumeData(make())
        rename(place.temporary.file(Place.partName), place.temporary.file("victim"))
        symlink("victim", place.temporary.file(Place.partName))
        #expect(try reopen(data) == nil)
        _ = try make("new")
        #expect(try place.content(of: "victim") == Array("0123456789".utf8))
        #expect(try place.status(of: Place.partName).st_mode & S_IFMT == S_IFREG)
    }

    @Test("A4: a FIFO in a part's place holds nothing up and is replaced")
    func fifo() throws {
        let data = try resumeData(make())
        try place.directory.remove(Place.partName)
        #expect(mkfifo(place.temporary.file(Place.partName), 0o600) == 0)
        #expect(try reopen(data) == nil)
        _ = try make()
        #expect(try place.status(of: Place.partName).st_mode & S_IFMT == S_IFREG)
    }

    @Test("a directory in a part's place is an error")
    func directory() throws {
        try place.temporary.makeDirectory(Place.partName)
        #expect(throws: TransferError.self) { _ = try make() }
    }

    /// Calls `body` while every sync of `part` fails, as on a disk that has lost writes.
    private func withFailingSync(of part: PartFile, _ body: () throws -> Void) throws {
        let raw = part.descriptor.raw
        let kept = dup(raw)
        var pipe: [Int32] = [0, 0]
        try #require(kept >= 0 && Glibc.pipe(&pipe) == 0)
        // A pipe cannot be synced.
        dup2(pipe[1], raw)
        defer {
            dup2(kept, raw)
            for descriptor in [kept] + pipe { close(descriptor) }
        }
        try body()
    }

    @Test("after a failed sync only what an earlier one covered counts, whatever a later one says")
    func failedSync() throws {
        let part = try make()
        _ = try part.synchronize()
        try write("abc", to: part, at: 10)
        try withFailingSync(of: part) {
            #expect(throws: TransferError.self) { _ = try part.synchronize() }
        }
        #expect(part.durable.ranges == [0..<10])
        #expect(throws: TransferError.self) { _ = try part.synchronize() }
        try write("def", to: part, at: 13)
        #expect(throws: TransferError.self) { _ = try part.synchronize() }
        #expect(part.durable.ranges == [0..<10])
    }

    @Test("a part whose sync failed once is not published, alone or in company")
    func failedSyncIsNotPublished() async throws {
        let publisher = try Publisher()
        defer { publisher.stop() }
        for company in [0, 20] {
            let part = try make()
            try withFailingSync(of: part) {
                #expect(throws: TransferError.self) { _ = try part.synchronize() }
            }
            for number in 0..<company {
                let name = ".other-\(company)-\(number)"
                let other = try PartFile.make(in: place.directory, name: name, owner: "test-2")
                publisher.publish(
                    Publisher.Item(
                        part: other, destination: FileDestination(name: "o\(number)", conflict: .fail), owner: "test-2",
                        size: 0
                    ) { _ in }, isUrgent: false)
            }
            let result = await withCheckedContinuation { continuation in
                publisher.publish(
                    Publisher.Item(
                        part: part, destination: FileDestination(name: "f", conflict: .fail), owner: "test-1", size: 10
                    ) { continuation.resume(returning: $0) }, isUrgent: true)
            }
            #expect(result.error != nil)
            #expect(!place.names.contains("f"))
        }
    }
}
