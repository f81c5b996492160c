/// The operations on the stored value of a field, whatever its type.
struct FieldOperations: Sendable {
    /// The location of the value; `nil` for a path that is not one of stored properties.
    let location: FieldLocation?
    /// Whether the value differs from the default.
    var isSet: @Sendable (_ values: TaskMemory) -> Bool
    /// Whether the values of two tasks differ.
    var differs: @Sendable (_ values: TaskMemory, _ others: TaskMemory) -> Bool
    /// Copies the value from one task to another.
    var copy: @Sendable (_ source: TaskMemory, _ target: inout UnpackedTask) -> Void
    /// Restores the default.
    var reset: @Sendable (_ values: inout UnpackedTask) -> Void
    /// Decodes the value; `null` leaves the default.
    var decode: @Sendable (KeyedDecodingContainer<AnyKey>, _ key: AnyKey, _ values: inout UnpackedTask) throws -> Void
    /// Encodes the value.
    var encode: @Sendable (_ values: TaskMemory, inout KeyedEncodingContainer<AnyKey>, AnyKey) throws -> Void
    /// Replaces the secret parts of each URL in the value; see ``TaskSpecification/redact(_:)``.
    var redact: @Sendable (_ values: inout UnpackedTask) -> Void = { _ in }
    /// Whether ``redact`` changes the value.
    var hasSecrets: @Sendable (_ values: TaskMemory) -> Bool = { _ in false }
    /// Returns the text; `nil` for a value of another form.
    var text: @Sendable (_ values: TaskMemory) -> String? = { _ in nil }
    /// Returns the size of the value's text in bytes, or 0 for a value of bounded size.
    var textSize: @Sendable (_ values: TaskMemory) -> Int = { _ in 0 }
    /// The description of valid JSON values.
    let expected: String

    init<Value: Codable & Equatable & Sendable>(_ path: FieldPath<Value>, default initial: Value, expected: String) {
        let place = FieldPlace(path)
        self.expected = expected
        location = FieldLocation(path)
        isSet = { place.get($0) != initial }
        differs = { place.get($0) != place.get($1) }
        copy = { place.set(place.get($0), in: &$1) }
        reset = { place.set(initial, in: &$0) }
        decode = { container, key, values in
            if let value = try container.decodeIfPresent(Value.self, forKey: key) { place.set(value, in: &values) }
        }
        encode = { values, container, key in try container.encode(place.get(values), forKey: key) }
    }

    init<Value: Codable & Equatable & Sendable>(_ path: FieldPath<Value?>, expected: String) {
        let place = FieldPlace(path)
        self.expected = expected
        location = FieldLocation(path)
        isSet = { place.get($0) != nil }
        differs = { place.get($0) != place.get($1) }
        copy = { place.set(place.get($0), in: &$1) }
        reset = { place.set(nil, in: &$0) }
        decode = { container, key, values in
            place.set(try container.decodeIfPresent(Value.self, forKey: key), in: &values)
        }
        encode = { values, container, key in try container.encodeIfPresent(place.get(values), forKey: key) }
    }
}

// Containers decode and encode a type that they know faster than a generic one.
extension FieldOperations {
    init(text path: FieldPath<String?>) {
        let place = FieldPlace(path)
        self.init(path, expected: "a string")
        decode = { container, key, values in
            place.set(try container.decodeIfPresent(String.self, forKey: key), in: &values)
        }
        encode = { values, container, key in try container.encodeIfPresent(place.get(values), forKey: key) }
        redact = { values in values[keyPath: path] = values[keyPath: path].map(TaskSpecification.redact) }
        hasSecrets = { place.get($0).map { TaskSpecification.redact($0) != $0 } ?? false }
        text = { place.get($0) }
        textSize = { place.get($0)?.utf8.count ?? 0 }
    }

    init(text path: FieldPath<String>) {
        let place = FieldPlace(path)
        self.init(path, default: "", expected: "a string")
        decode = { container, key, values in
            if let text = try container.decodeIfPresent(String.self, forKey: key) { place.set(text, in: &values) }
        }
        encode = { values, container, key in try container.encode(place.get(values), forKey: key) }
        text = { place.get($0) }
        textSize = { place.get($0).utf8.count }
    }

    init(texts path: FieldPath<[String]>, expected: String = "an array of strings") {
        let place = FieldPlace(path)
        self.init(path, default: [], expected: expected)
        redact = { values in values[keyPath: path] = values[keyPath: path].map(TaskSpecification.redact) }
        hasSecrets = { place.get($0).contains { TaskSpecification.redact($0) != $0 } }
        textSize = { place.get($0).reduce(0) { $0 + $1.utf8.count + 2 } }
    }

    init(flag path: FieldPath<Bool>) {
        let place = FieldPlace(path)
        self.init(path, default: false, expected: "true or false")
        decode = { container, key, values in
            if let flag = try container.decodeIfPresent(Bool.self, forKey: key) { place.set(flag, in: &values) }
        }
        encode = { values, container, key in try container.encode(place.get(values), forKey: key) }
    }
}
