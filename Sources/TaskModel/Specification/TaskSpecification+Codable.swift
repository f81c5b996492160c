extension TaskSpecification: Codable {
    /// Decodes a specification from a JSON object.
    ///
    /// - Throws: ``FieldError`` for an unknown key, a value of the wrong type, or a missing URL.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        var values = UnpackedTask(TaskSpecification(url: ""))
        // The loop runs over the keys that are present, since most tasks have few of the fields.
        for key in container.allKeys {
            guard let field = TaskField.ofJSON(named: key.stringValue) else {
                let nearest = NearestWord.to(key.stringValue, among: TaskField.ofJSON.map(\.name))
                throw FieldError(
                    field: key.stringValue,
                    message: "is not a field of a task" + (nearest.map { "; did you mean \($0)?" } ?? ""))
            }
            try field.decode(container, into: &values)
        }
        self = values.packed
        if url.isEmpty, try container.decodeIfPresent(String.self, forKey: AnyKey(stringValue: "url")) == nil {
            throw FieldError(field: "url", message: "is missing")
        }
    }

    /// Encodes only the values that differ from the defaults.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        if isURLAlone {
            try container.encode(url, forKey: AnyKey(stringValue: "url"))
            return
        }
        let fields = setFields.union(.required).intersection(.ofJSON)
        try withMemory { values in
            for field in fields { try field.operations.encode(values, &container, field.jsonKey) }
        }
    }
}

extension TaskField {
    /// Decodes the value from the JSON of a task.
    ///
    /// - Parameter suffix: the end of the description of valid values in an error message.
    /// - Throws: ``FieldError`` for a value of the wrong type.
    func decode(
        _ container: KeyedDecodingContainer<AnyKey>, into values: inout UnpackedTask, suffix: String = ""
    ) throws(FieldError) {
        do {
            try operations.decode(container, jsonKey, &values)
        } catch let error as FieldError where isObject {
            throw FieldError(field: "\(name).\(error.field)", message: error.message)
        } catch {
            throw FieldError(field: name, message: "must be \(operations.expected)\(suffix)")
        }
    }
}

extension TaskSpecification {
    /// An upper bound of the size as JSON, in bytes: every character may need an escape.
    package var estimatedSize: Int {
        if isURLAlone { return 2 * url.utf8.count + 400 }
        let fields = setFields.intersection(.ofJSON)
        return withMemory { values in 2 * fields.reduce(0) { $0 + $1.operations.textSize(values) } + 400 }
    }
}
