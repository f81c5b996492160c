@preconcurrency import Dispatch
import Glibc
import Synchronization

/// The kernel's notifications about one directory (inotify(7)). It uses no CPU time while nothing happens.
final class DirectoryEvents: Sendable {
    struct Changes: Equatable {
        /// The files that were closed after writing or renamed into the directory, in order.
        var closed: [String] = []
        /// Whether events were lost.
        var isCut = false
        /// Whether the directory was moved, removed or unmounted.
        var isGone = false
    }

    private let changes: Held
    private let source: any DispatchSourceRead

    private final class Held: Sendable {
        let changes = Mutex(Changes())
    }

    /// The maximum number of names kept until they are taken.
    private static let maximumNames = 4096

    // The events of complete files (inotify(7)): IN_CLOSE_WRITE, IN_MOVED_TO.
    private static let arrivals: UInt32 = 0x08 | 0x80
    /// The events that end the watch: IN_UNMOUNT, IN_IGNORED, IN_DELETE_SELF, IN_MOVE_SELF.
    private static let ends: UInt32 = 0x2000 | 0x8000 | 0x400 | 0x800
    /// The events and flags of the watch: `comings`, IN_DELETE_SELF, IN_MOVE_SELF, IN_ONLYDIR.
    private static let asked: UInt32 = arrivals | 0x400 | 0x800 | 0x0100_0000
    private static let overflow: UInt32 = 0x4000  // IN_Q_OVERFLOW
    private static let ofDirectory: UInt32 = 0x4000_0000  // IN_ISDIR

    /// Starts listening.
    ///
    /// - Parameters:
    ///   - path: the path of the directory.
    ///   - onChange: called whenever there are events to take.
    /// - Returns: `nil` where the kernel cannot provide notifications.
    init?(of path: String, onChange: @escaping @Sendable () -> Void) {
        let descriptor = inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        guard inotify_add_watch(descriptor, path, Self.asked) >= 0 else {
            _ = close(descriptor)  // cannot lose data: nothing was written
            return nil
        }
        let changes = Held()
        self.changes = changes
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
        source.setEventHandler {
            var isNew = false
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
                isNew = true
                changes.changes.withLock { Self.add(buffer[..<count], to: &$0) }
            }
            if isNew { onChange() }
        }
        source.setCancelHandler { _ = close(descriptor) }  // cannot lose data: nothing was written
        source.activate()
    }

    deinit { source.cancel() }

    /// Returns and clears the events since the last call.
    func drain() -> Changes {
        changes.changes.withLock { changes in
            defer { changes = Changes() }
            return changes
        }
    }

    /// Decodes inotify events.
    ///
    /// - Parameter bytes: complete events, as returned by read(2).
    static func add(_ bytes: ArraySlice<UInt8>, to changes: inout Changes) {
        var rest = bytes
        func word(_ offset: Int) -> UInt32 {
            rest.dropFirst(offset).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }
        // An event consists of wd, mask, cookie, the length of the name including its padding, and the name.
        while rest.count >= 16 {
            let (mask, length) = (word(4), Int(word(12)))
            guard rest.count >= 16 + length else { return }
            let name = rest.dropFirst(16).prefix(length).prefix { $0 != 0 }
            rest = rest.dropFirst(16 + length)
            if mask & overflow != 0 { changes.isCut = true }
            if mask & ends != 0 { changes.isGone = true }
            guard mask & arrivals != 0, mask & ofDirectory == 0 else { continue }
            // Names that are not valid UTF-8 are ignored.
            guard let name = String(validating: name, as: UTF8.self), !name.isEmpty else { continue }
            if changes.closed.count >= maximumNames {
                changes.isCut = true
            } else if changes.closed.last != name {
                changes.closed.append(name)
            }
        }
    }
}
