/// A generator of one number.
///
/// The number is stored, since ThreadSanitizer crashes at an access to a value without storage.
struct ConstantGenerator: RandomNumberGenerator {
    static let largest = ConstantGenerator(value: .max)
    static let smallest = ConstantGenerator(value: 1 << 32)

    private let value: UInt64

    private init(value: UInt64) { self.value = value }

    mutating func next() -> UInt64 { value }
}
