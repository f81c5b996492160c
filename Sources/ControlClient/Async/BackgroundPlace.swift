import FoundationEssentials
import Glibc

/// The place of an app in the journal of events, in a file of the user's state directory.
struct BackgroundPlace: Sendable {
    private let file: DurableFile

    /// - Throws: ``ClientError/unusableIdentifier(_:)`` or ``ClientError/unusableState(path:errno:)``.
    init(
        identifier: String, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ClientError) {
        guard Self.isIdentifier(identifier) else { throw .unusableIdentifier(identifier) }
        guard let directory = DurableFile.directory(environment: environment) else {
            throw .unusableState(path: "$HOME", errno: ENOENT)
        }
        file = DurableFile(path: directory + "/dld/apps/" + identifier)
    }

    private static func isIdentifier(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: ".") && !text.hasSuffix(".new")
            && !text.hasSuffix(".lock")
            && text.utf8.allSatisfy {
                UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20
                    || [0x2D, 0x2E, 0x5F].contains($0)
            }
    }

    /// Stores the place where the app begins, unless it has one.
    func begin(at cursor: EventCursor) throws(ClientError) {
        // A process that holds the lock has stored a place.
        guard try load() == nil, let lock = try lock() else { return }
        defer { withExtendedLifetime(lock) {} }
        if try load() == nil { try store(cursor) }
    }

    /// Returns the stored place; `nil` if there is none.
    func load() throws(ClientError) -> EventCursor? {
        let contents: [UInt8]?
        do throws(DurableFile.Failure) {
            contents = try file.load()
        } catch {
            throw .unusableState(path: error.path, errno: error.errno)
        }
        guard let contents else { return nil }
        let line = contents.split(separator: UInt8(ascii: "\n")).first.map { String(decoding: $0, as: UTF8.self) }
        guard let cursor = line.flatMap(EventCursor.init) else {
            throw .unusableState(path: file.path, errno: EINVAL)
        }
        return cursor
    }

    /// Replaces the stored place. It survives a power failure.
    func store(_ cursor: EventCursor) throws(ClientError) {
        do throws(DurableFile.Failure) {
            try file.store("\(cursor)\n".utf8)
        } catch {
            throw .unusableState(path: error.path, errno: error.errno)
        }
    }

    /// A lock that one process holds at a time.
    final class Lock {
        private let descriptor: Int32

        fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { _ = close(descriptor) }  // the lock goes with it
    }

    /// Returns the lock of the place; `nil` if another process delivers its events.
    func lock() throws(ClientError) -> Lock? {
        let path = file.path + ".lock"
        do throws(DurableFile.Failure) {
            try file.makeDirectory()
        } catch {
            throw .unusableState(path: error.path, errno: error.errno)
        }
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .unusableState(path: path, errno: errno) }
        let lock = Lock(descriptor)
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return nil }
            guard errno == EINTR else { throw .unusableState(path: path, errno: errno) }
        }
        return lock
    }
}
