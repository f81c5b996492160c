/// The layout of fields in memory, by which the few fields whose values differ are found without a look at each.
struct FieldLayout: Sendable {
    /// A part of the memory.
    private struct Word {
        /// The bits that belong to values, in contrast to padding.
        var mask: UInt64 = 0
        var fields = TaskFieldSet()
    }

    private static let width = MemoryLayout<UInt64>.size
    private let isRare: Bool
    private let words: [Word]
    /// The fields that the words do not cover.
    private let others: TaskFieldSet

    /// The layout of the fields in ``TaskSpecification`` itself.
    static let common = FieldLayout(.common, isRare: false, size: MemoryLayout<TaskSpecification>.size)
    /// The layout of the fields in ``DetailValues``.
    static let rare = FieldLayout(.rare, isRare: true, size: MemoryLayout<DetailValues>.size)

    private init(_ fields: TaskFieldSet, isRare: Bool, size: Int) {
        var words = Array(repeating: Word(), count: size / Self.width)
        var others = TaskFieldSet()
        for field in fields {
            guard let location = field.operations.location,
                location.offset + location.size <= words.count * Self.width
            else {
                others.insert(field)
                continue
            }
            for byte in location.offset..<(location.offset + location.size) {
                words[byte / Self.width].fields.insert(field)
                withUnsafeMutableBytes(of: &words[byte / Self.width].mask) { $0[byte % Self.width] = .max }
            }
        }
        self.isRare = isRare
        self.words = words
        self.others = others
    }

    /// Returns the fields whose values differ in memory. Only these can have different values, but values that are the
    /// same may differ in memory too, such as the addresses of equal texts.
    func differences(_ one: TaskMemory, _ other: TaskMemory) -> TaskFieldSet {
        let (one, other) = isRare ? (one.details, other.details) : (one.task, other.task)
        var fields = others
        var offset = 0
        for word in words {
            let (value, known) = (
                one.load(fromByteOffset: offset, as: UInt64.self), other.load(fromByteOffset: offset, as: UInt64.self)
            )
            if (value ^ known) & word.mask != 0 { fields.formUnion(word.fields) }
            offset += Self.width
        }
        return fields
    }
}

extension TaskSpecification {
    /// The fields whose values differ from the defaults.
    package var setFields: TaskFieldSet {
        let common = withCommonMemory { FieldLayout.common.differences($0, .defaults).set(in: $0) }
        guard let details else { return common }
        return common.union(details.fields)
    }
}

extension DetailValues {
    /// The fields whose values differ from the defaults.
    var setFields: TaskFieldSet { withMemory { FieldLayout.rare.differences($0, .defaults).set(in: $0) } }
}
