import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("What fits, and what never does")
struct RoomTests {
    private let place: Place

    init() throws { place = try Place() }

    @Test("a file that is larger than its file system never fits")
    func capacity() throws {
        let capacity = try #require(place.directory.capacity)
        try place.directory.check(canHold: 1 << 20, of: capacity)
        for size in [capacity + 1, 1 << 53, .max - 1, .max] as [Int64] {
            let error = #expect(throws: TransferError.self) { try place.directory.check(canHold: size, of: capacity) }
            #expect(error?.code == .tooLarge)
        }
    }

    @Test("a file past what the file system takes in one never fits", .enabled(if: geteuid() == 0, "mounts"))
    func oneFile() async throws {
        let image = place.temporary.file("image")
        let path = try place.temporary.makeDirectory("volume")
        try await Mount.makeExt4(image: image, bytes: 16 << 20)
        guard let mount = try? await Mount.ext4(image: image, at: path) else { return }
        let part = try PartFile.make(in: try Directory.open(root: path), name: Place.partName, owner: "test-1")
        try part.check(canHold: 1 << 30)
        let error = #expect(throws: TransferError.self) { try part.check(canHold: 1 << 60) }
        #expect(error?.code == .tooLarge && mount.path == path)
        #expect(try part.descriptor.status().st_size == 0)
    }

    @Test("a file system that does not say how large it is lets files come", .enabled(if: geteuid() == 0, "mounts"))
    func unknownCapacity() async throws {
        let path = try place.temporary.makeDirectory("unlimited")
        let mount = try await Mount.tmpfs(at: path, bytes: 0)
        let directory = try Directory.open(root: path)
        #expect(directory.capacity == nil && directory.freeSpace() == nil && directory.reserve(1 << 20) == 0)
        try directory.check(canHold: 1 << 40, of: directory.capacity)
        _ = mount.path
    }

    @Test("what a name cannot be is no trouble of the disk's, and is not tried again")
    func names() throws {
        let long = String(repeating: "x", count: 300)
        let error = #expect(throws: TransferError.self) {
            try Directory.open(root: place.temporary.path, subdirectory: long)
        }
        #expect(error?.code == .pathNotAllowed)
        #expect(error.map { RetryClass($0) } == .never)
        #expect(TransferError.naming(EINVAL, doing: "x").code == .pathNotAllowed)
        #expect(TransferError.naming(EIO, doing: "x").code == .io)
        #expect(TransferError.file(EILSEQ, doing: "x").code == .pathNotAllowed)
        // Errors of the disk keep their codes.
        for number in [ENOSPC, EDQUOT] { #expect(TransferError.file(number, doing: "x").code == .diskFull) }
        for number in [EROFS, EIO, ESTALE, ENOENT, EBUSY] {
            #expect(TransferError.file(number, doing: "x").code == .io)
        }
    }

    @Test("a name that is too long for its file is told at the rename, and the bytes stay")
    func publishing() async throws {
        let publisher = try Publisher()
        defer { publisher.stop() }
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        let destination = FileDestination(name: String(repeating: "x", count: 300), conflict: .fail)
        let result = await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(part: part, destination: destination, owner: "test-1", size: 0) {
                    continuation.resume(returning: $0)
                }, isUrgent: true)
        }
        #expect(result.error?.code == .pathNotAllowed)
        #expect(place.names == [Place.partName])
    }
}
