import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Files that get their name when they are complete")
struct UnnamedFilesTests {
    private let place: Place
    private let publisher: Publisher

    init() throws {
        place = try Place()
        publisher = try Publisher()
    }

    /// Returns a part file without a name; `nil` where the file system of the tests needs names.
    private func part(
        _ text: String, in directory: Directory? = nil, owner: String = "test-1", isPrivate: Bool = false
    ) throws -> PartFile? {
        let part = PartFile.makeUnnamed(
            in: directory ?? place.directory, name: Place.partName, owner: owner, isPrivate: isPrivate)
        try Array(text.utf8).withUnsafeBytes { try part?.write($0, at: 0) }
        return part
    }

    private func publish(
        _ part: PartFile, owner: String = "test-1", size: Int, as destination: FileDestination, isUrgent: Bool = true
    ) async -> Result<PublishedFile, TransferError> {
        await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(part: part, destination: destination, owner: owner, size: Int64(size)) {
                    continuation.resume(returning: $0)
                }, isUrgent: isUrgent)
        }
    }

    private static let numbered = FileDestination.Conflict.rename { name, number in "\(name).\(number)" }

    @Test("a file has no entry until it is complete, and then its own")
    func plain() async throws {
        defer { publisher.stop() }
        guard let part = try part("abc") else { return }
        #expect(place.names == [])
        let destination = FileDestination(name: "f", conflict: .fail, modificationTime: 784_111_777)
        let file = try await publish(part, size: 3, as: destination).get()
        #expect(file == PublishedFile(path: place.temporary.file("f"), size: 3, isVerified: false))
        #expect(place.names == ["f"])
        #expect(try place.content(of: "f") == Array("abc".utf8))
        let status = try place.status(of: "f")
        #expect(status.st_nlink == 1 && status.st_mtim.tv_sec == 784_111_777)
        #expect(place.directory.publishedSize(of: "f", by: "test-1") == 3)
    }

    @Test("a file that is not published vanishes")
    func vanishes() throws {
        publisher.stop()
        do { _ = try part("abc") }
        #expect(place.names == [])
    }

    @Test("the permissions are those of a new file, or the owner's alone", arguments: [false, true])
    func permissions(isPrivate: Bool) async throws {
        defer { publisher.stop() }
        guard let part = try part("abc", isPrivate: isPrivate) else { return }
        let plain = open(place.temporary.file("plain"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        close(plain)
        var destination = FileDestination(name: "f", conflict: .fail)
        destination.isPrivate = isPrivate
        _ = try await publish(part, size: 3, as: destination).get()
        let expected = isPrivate ? S_IFREG | 0o600 : try place.status(of: "plain").st_mode
        #expect(try place.status(of: "f").st_mode == expected)
    }

    @Test("a taken name is kept, and the error says so", arguments: ["fail", "skip"])
    func taken(policy: String) async throws {
        defer { publisher.stop() }
        guard let part = try part("new") else { return }
        try place.temporary.write("old", to: "f")
        let destination = FileDestination(name: "f", conflict: policy == "fail" ? .fail : .skip)
        let result = await publish(part, size: 3, as: destination)
        #expect(result.error?.code == .nameConflict)
        #expect(try place.content(of: "f") == Array("old".utf8))
        #expect(place.names == ["f"])
    }

    @Test("the next free number is found, and the same file is not published twice")
    func numbers() async throws {
        defer { publisher.stop() }
        for name in ["f", "f.1"] { try place.temporary.write("old", to: name) }
        let destination = FileDestination(name: "f", conflict: Self.numbered)
        for _ in 0..<2 {
            guard let part = try part("new") else { return }
            let file = try await publish(part, size: 3, as: destination).get()
            #expect(file.path == place.temporary.file("f.2"))
        }
        #expect(place.names.sorted() == ["f", "f.1", "f.2"])
    }

    @Test("a file in a directory that was removed meanwhile is refused, and the next one is not")
    func removedDirectory() async throws {
        defer { publisher.stop() }
        let path = try place.temporary.makeDirectory("gone")
        guard let part = try part("abc", in: try Directory.open(root: path)) else { return }
        #expect(rmdir(path) == 0)
        let result = await publish(part, size: 3, as: FileDestination(name: "f", conflict: .fail))
        #expect(result.error?.systemError == ENOENT)
        guard let next = try self.part("abc") else { return }
        _ = try await publish(next, size: 3, as: FileDestination(name: "f", conflict: .fail)).get()
    }

    @Test("a batch may have files with and without names, in several directories")
    func mixed() async throws {
        defer { publisher.stop() }
        let other = try Directory.open(root: try place.temporary.makeDirectory("other"))
        var parts: [(part: PartFile, owner: String)] = []
        for number in 0..<24 {
            let (directory, owner) = (number % 2 == 0 ? place.directory : other, "test-\(number)x")
            let unnamed = number % 3 == 0 ? nil : try part("content", in: directory, owner: owner)
            let named = try unnamed ?? PartFile.make(in: directory, name: ".part-\(number)", owner: owner)
            if unnamed == nil { try Array("content".utf8).withUnsafeBytes { try named.write($0, at: 0) } }
            parts.append((named, owner))
        }
        let paths = try await withThrowingTaskGroup(of: String.self) { group in
            for (part, owner) in parts {
                group.addTask {
                    let destination = FileDestination(name: "f", conflict: Self.numbered)
                    return try await publish(part, owner: owner, size: 7, as: destination, isUrgent: false).get().path
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(paths).count == 24)
        for path in paths { #expect(try bytes(ofFileAt: path) == Array("content".utf8)) }
        #expect(place.names.filter { !$0.hasPrefix("other") }.count == 12)
    }

    @Test("names of files that had none are synced with their file system, those of others with their directory")
    func syncs() throws {
        publisher.stop()
        var naming = FileNaming(umask: 0o022, earlierNames: EarlierNames())
        func item(_ part: PartFile, as name: String) -> Publisher.Item {
            Publisher.Item(
                part: part, destination: FileDestination(name: name, conflict: Self.numbered), owner: "test-1", size: 3
            ) { _ in }
        }
        guard let unnamed = try part("abc") else { return }
        #expect(try naming.name(item(unnamed, as: "f")).sync == .fileSystem)
        let named = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-2")
        try Array("abc".utf8).withUnsafeBytes { try named.write($0, at: 0) }
        #expect(try naming.name(item(named, as: "g")).sync == .directory)
        // Published by an earlier process, which may have ended before its sync.
        guard let again = try part("abc") else { return }
        let found = try naming.name(item(again, as: "f"))
        #expect(found.sync == .fileSystem && found.file.path == place.temporary.file("f"))
    }
}
