import Synchronization

/// What the attempts at one upload leave each other on a file server: bytes under the name that the file has until it is
/// whole.
final class UploadRest: Sendable {
    /// Of the temporary name, nobody else's.
    let token = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    private let isThere = Atomic<Bool>(false)

    /// An attempt that broke left bytes for the next one.
    var isLeft: Bool {
        get { isThere.load(ordering: .acquiring) }
        set { isThere.store(newValue, ordering: .releasing) }
    }
}
