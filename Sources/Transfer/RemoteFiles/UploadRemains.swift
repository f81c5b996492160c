import Synchronization

/// The state shared by the attempts at one upload: whether a temporary file of an interrupted attempt exists on the
/// file server.
final class UploadRemains: Sendable {
    /// The token, once it is known. Uploads to HTTP servers need none.
    private let known: Mutex<String?>
    /// Whether an earlier request may have left a file under the temporary name.
    let mayBeThere: Bool
    private let isThere = Atomic<Bool>(false)

    /// Creates the state.
    ///
    /// - Parameter name: The caller's upload name. An invalid one is ignored.
    init(name: String? = nil) {
        let name = name.flatMap { Self.isPlain($0) ? $0 : nil }
        mayBeThere = name != nil
        known = Mutex(name)
    }

    /// The unique part of the temporary name.
    var token: String {
        known.withLock { known in
            let token = known ?? String(UInt64.random(in: 0...UInt64.max), radix: 16)
            known = token
            return token
        }
    }

    private static func isPlain(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0.isASCIILetterOrDigit || $0 == UInt8(ascii: "-") }
    }

    /// Whether an interrupted attempt left bytes for the next one.
    var isLeft: Bool {
        get { isThere.load(ordering: .acquiring) }
        set { isThere.store(newValue, ordering: .releasing) }
    }
}
