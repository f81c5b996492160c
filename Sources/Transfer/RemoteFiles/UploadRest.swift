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
        let isPlain = name.map { name in
            (1...64).contains(name.utf8.count)
                && name.utf8.allSatisfy {
                    UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || Self.isLetter($0) || $0 == 0x2D
                }
        }
        mayBeThere = isPlain == true
        token = name.flatMap { isPlain == true ? $0 : nil } ?? String(UInt64.random(in: 0...UInt64.max), radix: 16)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
    }

    /// An attempt that broke left bytes for the next one.
    var isLeft: Bool {
        get { isThere.load(ordering: .acquiring) }
        set { isThere.store(newValue, ordering: .releasing) }
    }
}
