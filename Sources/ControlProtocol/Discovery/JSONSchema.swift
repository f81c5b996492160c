import TaskModel

/// A JSON Schema (draft 7) as a JSON value.
public struct JSONSchema: Sendable, Equatable {
    public let value: RPCValue

    init(_ value: RPCValue) { self.value = value }

    static let boolean = JSONSchema(["type": "boolean"])
    static let text = JSONSchema(["type": "string"])
    static let integer = JSONSchema(["type": "integer"])
    /// A number of bytes, of tasks or of events.
    static let count = JSONSchema(["type": "integer", "minimum": 0])
    static let number = JSONSchema(["type": "number"])
    static let taskID = JSONSchema(["type": "integer", "description": "the id of a task"])
    static let milliseconds = JSONSchema(["type": "integer", "description": "milliseconds since 1970"])
    static let uid = JSONSchema(["type": "integer", "minimum": 0, "maximum": .integer(Int64(UInt32.max))])

    static func integer(_ range: ClosedRange<Int64>) -> JSONSchema {
        JSONSchema([
            "type": "integer", "minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound),
        ])
    }

    static func words(_ words: [String]) -> JSONSchema {
        JSONSchema(["type": "string", "enum": .array(words.map { .string($0) })])
    }

    static func words<Word: CaseIterable & RawRepresentable<String>>(of _: Word.Type) -> JSONSchema {
        words(Word.allCases.map(\.rawValue))
    }

    /// - Parameter most: the maximum number of elements.
    static func array(of element: JSONSchema, most: Int? = nil) -> JSONSchema {
        var object: [String: RPCValue] = ["type": "array", "items": element.value]
        if let most { object["maxItems"] = .integer(Int64(most)) }
        return JSONSchema(.object(object))
    }

    static func either(_ schemas: JSONSchema...) -> JSONSchema {
        JSONSchema(["anyOf": .array(schemas.map(\.value))])
    }

    /// An object whose names are not known in advance.
    static func map(of value: JSONSchema) -> JSONSchema {
        JSONSchema(["type": "object", "additionalProperties": value.value])
    }

    /// A schema of ``SharedSchema``.
    static func shared(_ schema: SharedSchema) -> JSONSchema {
        JSONSchema(["$ref": .string("#/components/schemas/\(schema.rawValue)")])
    }

    /// The schema, or `null`.
    var orNull: JSONSchema { .either(self, JSONSchema(["type": "null"])) }

    /// An object of a request, which may have these fields and no others.
    static func request(_ fields: [ParameterField]) -> JSONSchema { object(fields, isOpen: false) }

    /// An object of a result. Every field is always present; later versions may add more.
    static func result(_ fields: [ParameterField]) -> JSONSchema { object(fields, isOpen: true) }

    private static func object(_ fields: [ParameterField], isOpen: Bool) -> JSONSchema {
        let properties = fields.map { field in (field.name, field.described) }
        var object: [String: RPCValue] = [
            "type": "object", "properties": .object(Dictionary(properties) { $1 }),
            "additionalProperties": .bool(isOpen),
        ]
        let required = fields.filter(\.isRequired).map { RPCValue.string($0.name) }
        if !required.isEmpty { object["required"] = .array(required) }
        return JSONSchema(.object(object))
    }

    /// The schema of a field's value in the JSON of a task.
    init(_ json: FieldJSON) {
        self =
            switch json {
            case .text: .text
            case .texts: .array(of: .text)
            case .flag: .boolean
            case .integer: .integer
            case .numbers: .array(of: .integer)
            case .words(let words): .words(words)
            case .connections:
                .either(
                    .integer(
                        Int64(ConnectionCount.bounds.lowerBound)...Int64(ConnectionCount.bounds.upperBound)),
                    .words(["auto"]))
            case .pieceHashes: .shared(.pieceHashes)
            }
    }
}

/// A parameter of a method, or a field of an object, with its schema.
public struct ParameterField: Sendable, Equatable {
    public let name: String
    /// The meaning of the value, as a phrase without a full stop.
    public let summary: String
    public let isRequired: Bool
    public let schema: JSONSchema

    init(_ name: String, _ schema: JSONSchema, _ summary: String, isRequired: Bool = true) {
        self.name = name
        self.schema = schema
        self.summary = summary
        self.isRequired = isRequired
    }

    static func optional(_ name: String, _ schema: JSONSchema, _ summary: String) -> ParameterField {
        ParameterField(name, schema, summary, isRequired: false)
    }

    /// The schema with the description.
    var described: RPCValue {
        guard case .object(var object) = schema.value else { return schema.value }
        // Beside a reference every other key is ignored (JSON Schema draft 7, section 8.3).
        if object["$ref"] != nil { return ["allOf": [schema.value], "description": .string(summary)] }
        object["description"] = .string(summary)
        return .object(object)
    }
}
