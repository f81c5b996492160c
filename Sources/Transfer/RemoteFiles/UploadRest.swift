import Synchronization

/// What the attempts at one upload leave each other on a file server: bytes under the name that the file has until it is
/// whole.
final class UploadRest: Sendable {
    /// Of the temporary name, nobody else's.
    let token: String
    /// An earlier request may have left something under that name.
    let mayBeThere: Bool
    private let isThere = Atomic<Bool>(false)

    /// - Parameter name: the caller's; one that cannot be told from other texts does not count.
    init(name: String? = nil) {
        let name = name.flatMap { Self.isPlain($0) ? $0 : nil }
        mayBeThere = name != nil
        token = name ?? String(UInt64.random(in: 0...UInt64.max), radix: 16)
    }

    private static func isPlain(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0.isASCIILetterOrDigit || $0 == UInt8(ascii: "-") }
    }

    /// An attempt that broke left bytes for the next one.
    var isLeft: Bool {
        get { isThere.load(ordering: .acquiring) }
        set { isThere.store(newValue, ordering: .releasing) }
    }
}
