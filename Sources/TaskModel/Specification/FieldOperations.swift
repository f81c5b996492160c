/// The operations on the stored value of a field, whatever its type.
///
/// Functions that only read take the values `inout` too, since a key path would otherwise copy all of them.
struct FieldOperations: Sendable {
    /// Whether the value differs from the default.
    var isSet: @Sendable (_ values: inout UnpackedTask) -> Bool
    /// Whether the values of two tasks differ.
    var differs: @Sendable (_ values: inout UnpackedTask, _ others: inout UnpackedTask) -> Bool
    /// Copies the value from one task to another.
    var copy: @Sendable (_ source: inout UnpackedTask, _ target: inout UnpackedTask) -> Void
    /// Restores the default.
    var reset: @Sendable (_ values: inout UnpackedTask) -> Void
    /// Decodes the value; `null` leaves the default.
    var decode: @Sendable (KeyedDecodingContainer<AnyKey>, _ key: AnyKey, _ values: inout UnpackedTask) throws -> Void
    /// Encodes the value.
    var encode: @Sendable (_ values: inout UnpackedTask, inout KeyedEncodingContainer<AnyKey>, AnyKey) throws -> Void
    /// Replaces the secret parts of each URL in the value; see ``TaskSpecification/redact(_:)``.
    var redact: @Sendable (_ values: inout UnpackedTask) -> Void = { _ in }
    /// Returns the size of the value's text in bytes, or 0 for a value of bounded size.
    var textSize: @Sendable (_ values: inout UnpackedTask) -> Int = { _ in 0 }
    /// The description of valid JSON values.
    let expected: String

    init<Value: Codable & Equatable & Sendable>(_ path: FieldPath<Value>, default initial: Value, expected: String) {
        let place = FieldPlace(path)
        self.expected = expected
        isSet = { place.get(&$0) != initial }
        differs = { place.get(&$0) != place.get(&$1) }
        copy = { place.set(place.get(&$0), in: &$1) }
        reset = { $0[keyPath: path] = initial }
        decode = { container, key, values in
            if let value = try container.decodeIfPresent(Value.self, forKey: key) { values[keyPath: path] = value }
        }
        encode = { values, container, key in try container.encode(place.get(&values), forKey: key) }
    }

    init<Value: Codable & Equatable & Sendable>(_ path: FieldPath<Value?>, expected: String) {
        let place = FieldPlace(path)
        self.expected = expected
        isSet = { place.get(&$0) != nil }
        differs = { place.get(&$0) != place.get(&$1) }
        copy = { place.set(place.get(&$0), in: &$1) }
        reset = { $0[keyPath: path] = nil }
        decode = { container, key, values in
            values[keyPath: path] = try container.decodeIfPresent(Value.self, forKey: key)
        }
        encode = { values, container, key in try container.encodeIfPresent(place.get(&values), forKey: key) }
    }

    init(text path: FieldPath<String?>) {
        let place = FieldPlace(path)
        self.init(path, expected: "a string")
        decode = { container, key, values in
            values[keyPath: path] = try container.decodeIfPresent(String.self, forKey: key)
        }
        encode = { values, container, key in try container.encodeIfPresent(place.get(&values), forKey: key) }
        redact = { values in values[keyPath: path] = values[keyPath: path].map(TaskSpecification.redact) }
        textSize = { place.get(&$0)?.utf8.count ?? 0 }
    }

    init(text path: FieldPath<String>) {
        let place = FieldPlace(path)
        self.init(path, default: "", expected: "a string")
        encode = { values, container, key in try container.encode(place.get(&values), forKey: key) }
        textSize = { place.get(&$0).utf8.count }
    }

    init(texts path: FieldPath<[String]>, expected: String = "an array of strings") {
        let place = FieldPlace(path)
        self.init(path, default: [], expected: expected)
        redact = { values in values[keyPath: path] = values[keyPath: path].map(TaskSpecification.redact) }
        textSize = { place.get(&$0).reduce(0) { $0 + $1.utf8.count + 2 } }
    }
}
