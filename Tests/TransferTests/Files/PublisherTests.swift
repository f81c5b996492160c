import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Giving files their names")
struct PublisherTests {
    private let place: Place
    private let publisher: Publisher

    init() throws {
        place = try Place()
        publisher = try Publisher()
    }

    private func part(_ text: String, name: String = Place.partName, owner: String = "test-1") throws -> PartFile {
        let part = try PartFile.make(in: place.directory, name: name, owner: owner)
        try Array(text.utf8).withUnsafeBytes { try part.write($0, at: 0) }
        return part
    }

    private func publish(
        _ text: String, part name: String = Place.partName, owner: String = "test-1", as destination: FileDestination,
        isVerified: Bool = false
    ) async throws -> Result<PublishedFile, TransferError> {
        let part = try part(text, name: name, owner: owner)
        return await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(
                    part: part, destination: destination, owner: owner, size: Int64(text.utf8.count),
                    isVerified: isVerified
                ) { continuation.resume(returning: $0) }, isUrgent: true)
        }
    }

    private static let numbered = FileDestination.Conflict.rename { name, number in "\(name).\(number)" }

    @Test("a file gets its name, and the part is gone")
    func plain() async throws {
        defer { publisher.stop() }
        let file = try await publish("abc", as: FileDestination(name: "f", conflict: .fail)).get()
        #expect(file == PublishedFile(path: place.temporary.file("f"), size: 3, isVerified: false))
        #expect(place.names == ["f"])
        #expect(try place.content(of: "f") == Array("abc".utf8))
    }

    @Test("permissions follow the umask, and nothing becomes executable")
    func permissions() async throws {
        defer { publisher.stop() }
        let plain = open(place.temporary.file("plain"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        close(plain)
        _ = try await publish("abc", as: FileDestination(name: "f", conflict: .fail)).get()
        let mode = try place.status(of: "f").st_mode
        #expect(mode == (try place.status(of: "plain").st_mode))
        #expect(mode & 0o7111 == 0)
    }

    @Test("the file has the time that it is to have")
    func modificationTime() async throws {
        defer { publisher.stop() }
        _ = try await publish("abc", as: FileDestination(name: "f", conflict: .fail, modificationTime: 784_111_777))
            .get()
        #expect(try place.status(of: "f").st_mtim.tv_sec == 784_111_777)
    }

    @Test("a file that someone put in the part's place is not given the name")
    func replacedPart() async throws {
        defer { publisher.stop() }
        let part = try part("abc")
        try place.temporary.write("junk", to: "other")
        #expect(Glibc.rename(place.temporary.file("other"), place.temporary.file(Place.partName)) == 0)
        let result = await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(
                    part: part, destination: FileDestination(name: "f", conflict: .overwrite), owner: "test-1", size: 3
                ) { continuation.resume(returning: $0) }, isUrgent: true)
        }
        #expect(result.error?.code == .remoteChanged)
        #expect(place.names == [Place.partName])
    }

    @Test("fail: what has the name keeps it, and the bytes stay in the part")
    func fail() async throws {
        defer { publisher.stop() }
        try place.temporary.write("old", to: "f")
        let result = try await publish("new", as: FileDestination(name: "f", conflict: .fail))
        #expect(result.error?.code == .nameConflict)
        #expect(try place.content(of: "f") == Array("old".utf8))
        #expect(try place.content(of: Place.partName) == Array("new".utf8))
    }

    @Test("fail: a directory that has the name is called one")
    func failAtDirectory() async throws {
        defer { publisher.stop() }
        let path = try place.temporary.makeDirectory("f")
        let result = try await publish("new", as: FileDestination(name: "f", conflict: .fail))
        #expect(result.error?.message == "there is already a directory \(path)")
    }

    @Test("skip: what has the name keeps it, and the error says which file that is")
    func skip() async throws {
        defer { publisher.stop() }
        try place.temporary.write("old", to: "f")
        let result = try await publish("abc", as: FileDestination(name: "f", conflict: .skip), isVerified: true)
        let error = try #require(result.error)
        let taken = try #require(error.underlying as? TakenName)
        #expect(error.code == .nameConflict)
        let file = try taken.file()
        #expect(
            file == PublishedFile(path: place.temporary.file("f"), size: 3, isVerified: false, wasPresent: true))
        #expect(try place.content(of: "f") == Array("old".utf8))
    }

    @Test("a directory that was moved meanwhile takes its file along; one that is gone keeps the path that it had")
    func moved() async throws {
        defer { publisher.stop() }
        let (old, new) = (place.temporary.file("a"), place.temporary.file("b"))
        #expect(mkdir(old, 0o755) == 0)
        let directory = try Directory.open(root: old)
        let part = try PartFile.make(in: directory, name: ".p", owner: "o")
        #expect(Glibc.rename(old, new) == 0)
        let result = await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(
                    part: part, destination: FileDestination(name: "f", conflict: .fail), owner: "o", size: 0,
                    isVerified: false
                ) { continuation.resume(returning: $0) }, isUrgent: true)
        }
        #expect(try result.get().path == new + "/f")
        #expect(unlink(new + "/f") == 0 && rmdir(new) == 0)
        #expect(try directory.currentPath() == old)
    }

    @Test("overwrite: the new file takes the place in one step")
    func overwrite() async throws {
        defer { publisher.stop() }
        try place.temporary.write("old and longer", to: "f")
        _ = try await publish("new", as: FileDestination(name: "f", conflict: .overwrite)).get()
        #expect(try place.content(of: "f") == Array("new".utf8))
        #expect(place.names == ["f"])
    }

    @Test("rename: the next name that is free")
    func rename() async throws {
        defer { publisher.stop() }
        for name in ["f", "f.1", "f.2"] { try place.temporary.write("old", to: name) }
        let file = try await publish("new", as: FileDestination(name: "f", conflict: Self.numbered)).get()
        #expect(file.path == place.temporary.file("f.3"))
        #expect(try place.content(of: "f") == Array("old".utf8))
    }

    @Test("rename: the names have no end")
    func manyNames() async throws {
        defer { publisher.stop() }
        for number in 0...10_050 { try place.temporary.write("", to: number == 0 ? "f" : "f.\(number)") }
        let destination = FileDestination(name: "f", conflict: Self.numbered)
        let paths = try await [
            publish("1", owner: "test-1", as: destination).get().path,
            publish("2", owner: "test-2", as: destination).get().path,
        ]
        #expect(paths == [place.temporary.file("f.10051"), place.temporary.file("f.10052")])
        // The published file is found again among many.
        #expect(try await publish("1", owner: "test-1", as: destination).get().path == paths[0])
        let next = try Publisher()
        defer { next.stop() }
        let part = try part("2", owner: "test-2")
        let result = await withCheckedContinuation { continuation in
            next.publish(
                Publisher.Item(part: part, destination: destination, owner: "test-2", size: 1) {
                    continuation.resume(returning: $0)
                }, isUrgent: true)
        }
        #expect(try result.get().path == paths[1])
    }

    @Test("a link in the name's place is not followed, even where it leads nowhere")
    func link() async throws {
        defer { publisher.stop() }
        symlink("nowhere", place.temporary.file("f"))
        #expect(try await publish("new", as: FileDestination(name: "f", conflict: .fail)).error?.code == .nameConflict)
        _ = try await publish("new", as: FileDestination(name: "f", conflict: .overwrite)).get()
        #expect(try place.status(of: "f").st_mode & S_IFMT == S_IFREG)
        #expect(place.names == ["f"])
    }

    @Test("what the same download published in an earlier life is known again, by another it is a conflict")
    func earlierLife() async throws {
        defer { publisher.stop() }
        let destination = FileDestination(name: "f", conflict: Self.numbered)
        let first = try await publish("abc", as: destination).get()
        let again = try await publish("abc", as: destination).get()
        #expect(again == first)
        #expect(place.names == ["f"])
        let other = try await publish("abc", owner: "test-2", as: destination).get()
        #expect(other.path == place.temporary.file("f.1"))
        #expect(place.directory.publishedSize(of: "f", by: "test-1") == 3)
        #expect(place.directory.publishedSize(of: "f", by: "test-2") == nil)
        #expect(place.directory.publishedSize(of: "none", by: "test-1") == nil)
    }

    @Test("of many publishers with one name each gets a name of its own, and no file is lost")
    func race() async throws {
        let publishers = try (0..<8).map { _ in try Publisher() }
        let paths = Notes<String>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<80 {
                let text = "content \(number)"
                let part = try part(text, name: ".part-\(number)", owner: "test-\(number)x")
                group.addTask {
                    let result = await withCheckedContinuation { continuation in
                        publishers[number % 8].publish(
                            Publisher.Item(
                                part: part, destination: FileDestination(name: "f", conflict: Self.numbered),
                                owner: "test-\(number)x", size: Int64(text.utf8.count)
                            ) { continuation.resume(returning: $0) }, isUrgent: number % 3 == 0 || number > 71)
                    }
                    paths.add(try result.get().path)
                    #expect(try bytes(ofFileAt: result.get().path) == Array(text.utf8))
                }
            }
            try await group.waitForAll()
        }
        for publisher in publishers + [publisher] { publisher.stop() }
        #expect(Set(paths.all).count == 80)
        #expect(place.names.count == 80)
    }

    @Test("files that share a sync are each asked whether their own bytes arrived")
    func sharedSync() async throws {
        defer { publisher.stop() }
        let parts = try (0..<10).map { try part("content", name: ".part-\($0)", owner: "test-\($0)") }
        // A pipe replaces the descriptor: the file system's sync succeeds, but the file cannot be checked.
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        try #require(dup2(ends[0], parts[4].descriptor.raw) >= 0)
        let results = await withTaskGroup(of: (Int, Result<PublishedFile, TransferError>).self) { group in
            for (number, part) in parts.enumerated() {
                group.addTask { [publisher] in
                    let result = await withCheckedContinuation { continuation in
                        publisher.publish(
                            Publisher.Item(
                                part: part, destination: FileDestination(name: "f\(number)", conflict: .fail),
                                owner: "test-\(number)", size: 7
                            ) { continuation.resume(returning: $0) }, isUrgent: false)
                    }
                    return (number, result)
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(results.filter { $0.value.error == nil }.keys.sorted() == [0, 1, 2, 3, 5, 6, 7, 8, 9])
        #expect(results[4]?.error?.message.contains("sync the file") == true)
    }

    @Test("a stop publishes what is waiting first")
    func stop() async throws {
        let part = try part("abc")
        let result = await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(
                    part: part, destination: FileDestination(name: "f", conflict: .fail), owner: "test-1", size: 3
                ) { continuation.resume(returning: $0) }, isUrgent: false)
            publisher.stop()
        }
        #expect(result.error == nil)
        #expect(place.names == ["f"])
    }
}
