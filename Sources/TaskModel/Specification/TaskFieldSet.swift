/// A set of fields of ``TaskField/all``, in the order of that list.
package struct TaskFieldSet: Sendable, Equatable {
    private var bits: UInt64 = 0

    package init() {}

    init(_ fields: some Sequence<TaskField>) {
        for field in fields { insert(field) }
    }

    package var isEmpty: Bool { bits == 0 }

    package mutating func insert(_ field: TaskField) { bits |= 1 << UInt64(field.index) }

    mutating func remove(_ field: TaskField) { bits &= ~(1 << UInt64(field.index)) }

    package func contains(_ field: TaskField) -> Bool { bits & (1 << UInt64(field.index)) != 0 }

    mutating func formUnion(_ other: TaskFieldSet) { bits |= other.bits }

    func union(_ other: TaskFieldSet) -> TaskFieldSet {
        var result = self
        result.formUnion(other)
        return result
    }

    func isDisjoint(with other: TaskFieldSet) -> Bool { bits & other.bits == 0 }

    func intersection(_ other: TaskFieldSet) -> TaskFieldSet {
        var result = self
        result.bits &= other.bits
        return result
    }

    func subtracting(_ other: TaskFieldSet) -> TaskFieldSet {
        var result = self
        result.bits &= ~other.bits
        return result
    }

    /// Returns the fields of this set whose values differ from the defaults.
    func set(in values: TaskMemory) -> TaskFieldSet {
        var result = TaskFieldSet()
        for field in self where field.operations.isSet(values) { result.insert(field) }
        return result
    }
}

extension TaskFieldSet {
    static let ofDownloads = TaskFieldSet(TaskField.all.filter { $0.kinds.only == .download })
    static let ofUploads = TaskFieldSet(TaskField.all.filter { $0.kinds.only == .upload })
    /// The fields of a task's JSON.
    static let ofJSON = TaskFieldSet(TaskField.ofJSON)
    /// The fields that the JSON of a task always has.
    static let required = TaskFieldSet(TaskField.all.filter(\.isRequired))
    /// The fields of ``TaskSecrets`` beside the URL.
    static let ofSecrets = TaskFieldSet(TaskField.all.filter { $0.secrecy != .none && !$0.isRequired })
    /// The fields with a check of their own.
    static let checked = TaskFieldSet(TaskField.all.filter { $0.check != nil })
    /// The fields whose values are in ``DetailValues``.
    static let rare = TaskFieldSet(TaskField.all.filter { $0.operations.location?.isRare ?? true })
    /// The fields whose values are in ``TaskSpecification`` itself.
    static let common = TaskFieldSet(TaskField.all).subtracting(.rare)
    /// The fields that have a meaning only where a request uses HTTP.
    static let ofHTTP = TaskFieldSet(TaskField.all.filter { $0.schemes != .all })
    /// The fields that have a meaning only where the URL itself uses HTTP.
    static let ofHTTPTargets = TaskFieldSet(TaskField.all.filter { $0.schemes == .httpTarget })
}

extension TaskFieldSet: Sequence, IteratorProtocol {
    package mutating func next() -> TaskField? {
        guard bits != 0 else { return nil }
        let index = bits.trailingZeroBitCount
        bits &= bits - 1
        return TaskField.all[index]
    }
}
