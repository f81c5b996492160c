import FoundationEssentials

/// A conversion of `Encodable` values to parameter values.
enum ParameterValueEncoder {
    /// Converts a value.
    ///
    /// - Throws: an error of the value's `encode(to:)`; ``TransferError/Code/invalidRequest`` for more than
    ///   ``ParameterValue/maximumDepth`` levels.
    static func value(
        of value: some Encodable, dates: URLEncodedFormParameterEncoder.DateEncoding
    ) throws -> ParameterValue {
        try EncodedNode.encode(value, at: [], dates: dates)
    }

    /// Converts values by name.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for a value that cannot be converted.
    static func parameters(of values: [String: any Encodable & Sendable]) throws(TransferError) -> Parameters {
        var parameters: Parameters = [:]
        for (name, value) in values {
            do {
                parameters[name] = try self.value(of: value, dates: .deferredToDate)
            } catch let error as TransferError {
                throw error
            } catch {
                throw TransferError(
                    .invalidRequest, "the parameter \(name.debugDescription) cannot be encoded: \(error)",
                    underlying: error)
            }
        }
        return parameters
    }
}

/// The result of one `encode(to:)`: a single value, an array, or a dictionary. Its containers share it.
private final class EncodedNode {
    private enum Kind { case nothing, value, array, dictionary }

    private var kind = Kind.nothing
    private var single = ParameterValue.null
    /// The elements of an array and the members of a dictionary are nodes, because nested containers fill them later.
    private var elements: [EncodedNode] = []
    private var members: [String: EncodedNode] = [:]
    let path: [any CodingKey]
    let dates: URLEncodedFormParameterEncoder.DateEncoding

    init(at path: [any CodingKey], dates: URLEncodedFormParameterEncoder.DateEncoding) {
        self.path = path
        self.dates = dates
    }

    /// Converts a value of any type. Some types of Foundation have a text form that their `encode(to:)` does not use.
    static func encode(
        _ value: some Encodable, at path: [any CodingKey], dates: URLEncodedFormParameterEncoder.DateEncoding
    ) throws -> ParameterValue {
        switch value {
        case let value as Date where dates != .deferredToDate: return Self.text(of: value, dates)
        case let value as Data: return .string(value.base64EncodedString())
        case let value as URL: return .string(value.absoluteString)
        case let value as Decimal: return .string(value.description)
        case let value as ParameterValue: return value
        default: break
        }
        guard path.count <= ParameterValue.maximumDepth else {
            throw ParameterValue.tooDeep(named: path.first?.stringValue ?? "")
        }
        let node = EncodedNode(at: path, dates: dates)
        try value.encode(to: NodeEncoder(node: node))
        return node.value
    }

    private static func text(
        of date: Date, _ encoding: URLEncodedFormParameterEncoder.DateEncoding
    ) -> ParameterValue {
        let seconds = date.timeIntervalSince1970
        switch encoding {
        case .deferredToDate: return .double(date.timeIntervalSinceReferenceDate)
        case .secondsSince1970: return Int(exactly: seconds).map { .int($0) } ?? .double(seconds)
        case .millisecondsSince1970:
            let milliseconds = (seconds * 1000).rounded()
            return Int(exactly: milliseconds).map { .int($0) } ?? .double(milliseconds)
        case .iso8601: return .string(date.formatted(.iso8601))
        }
    }

    /// The finished value. A type that encodes nothing is an empty dictionary, as in JSON.
    var value: ParameterValue {
        switch kind {
        case .value: single
        case .array: .array(elements.map(\.value))
        case .nothing, .dictionary: .dictionary(members.mapValues(\.value))
        }
    }

    /// The number of elements of an array.
    var count: Int { elements.count }

    func set(_ value: ParameterValue) {
        kind = .value
        single = value
    }

    func becomeArray() { kind = .array }

    func becomeDictionary() { kind = .dictionary }

    /// Adds an element to an array.
    func element() -> EncodedNode {
        let node = EncodedNode(at: path + [PlainKey(count)], dates: dates)
        elements.append(node)
        return node
    }

    /// Adds a member to a dictionary, or replaces it.
    func member(_ key: any CodingKey) -> EncodedNode {
        let node = EncodedNode(at: path + [key], dates: dates)
        members[key.stringValue] = node
        return node
    }

    func encode(_ value: some Encodable) throws {
        set(try Self.encode(value, at: path, dates: dates))
    }
}

/// A key for an element of an array, or for the value of a superclass.
private struct PlainKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ index: Int) {
        stringValue = String(index)
        intValue = index
    }

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) { self.init(intValue) }
}

private struct NodeEncoder: Encoder {
    let node: EncodedNode

    var codingPath: [any CodingKey] { node.path }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        node.becomeDictionary()
        return KeyedEncodingContainer(Keyed(node: node))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.becomeArray()
        return Unkeyed(node: node)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(node: node) }
}

private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: EncodedNode

    var codingPath: [any CodingKey] { node.path }

    mutating func encodeNil(forKey key: Key) { node.member(key).set(.null) }

    mutating func encode(_ value: some Encodable, forKey key: Key) throws { try node.member(key).encode(value) }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        NodeEncoder(node: node.member(key)).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        NodeEncoder(node: node.member(key)).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { NodeEncoder(node: node.member(PlainKey(stringValue: "super"))) }

    mutating func superEncoder(forKey key: Key) -> any Encoder { NodeEncoder(node: node.member(key)) }
}

private struct Unkeyed: UnkeyedEncodingContainer {
    let node: EncodedNode

    var codingPath: [any CodingKey] { node.path }
    var count: Int { node.count }

    mutating func encodeNil() { node.element().set(.null) }

    mutating func encode(_ value: some Encodable) throws { try node.element().encode(value) }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        NodeEncoder(node: node.element()).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        NodeEncoder(node: node.element()).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { NodeEncoder(node: node.element()) }
}

private struct Single: SingleValueEncodingContainer {
    let node: EncodedNode

    var codingPath: [any CodingKey] { node.path }

    mutating func encodeNil() { node.set(.null) }
    mutating func encode(_ value: Bool) { node.set(.bool(value)) }
    mutating func encode(_ value: String) { node.set(.string(value)) }
    mutating func encode(_ value: Double) { node.set(.double(value)) }

    mutating func encode(_ value: Float) {
        // The shortest text of the value, not that of its nearest `Double`.
        node.set(.double(Double(value.description) ?? Double(value)))
    }

    mutating func encode(_ value: Int) { set(value) }
    mutating func encode(_ value: Int8) { set(value) }
    mutating func encode(_ value: Int16) { set(value) }
    mutating func encode(_ value: Int32) { set(value) }
    mutating func encode(_ value: Int64) { set(value) }
    mutating func encode(_ value: UInt) { set(value) }
    mutating func encode(_ value: UInt8) { set(value) }
    mutating func encode(_ value: UInt16) { set(value) }
    mutating func encode(_ value: UInt32) { set(value) }
    mutating func encode(_ value: UInt64) { set(value) }
    mutating func encode(_ value: Int128) { set(value) }
    mutating func encode(_ value: UInt128) { set(value) }

    mutating func encode(_ value: some Encodable) throws { try node.encode(value) }

    /// Sets an integer; one that `Int` cannot represent as its digits.
    private func set(_ value: some BinaryInteger) {
        node.set(Int(exactly: value).map { .int($0) } ?? .string("\(value)"))
    }
}
