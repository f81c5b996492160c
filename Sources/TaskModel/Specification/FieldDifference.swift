import FoundationEssentials

/// A field in which two specifications differ.
public struct FieldDifference: Codable, Sendable, Equatable {
    /// The name for people: the long name of the option, and the key in queue files.
    public var field: String
    /// The previous value as text; `nil` if there was none or it is secret.
    public var from: String?
    public var to: String?

    /// The maximum length of a value.
    private static let limit = 200

    public init(field: String, from: String?, to: String?) {
        self.field = field
        self.from = from.map { String($0.prefix(Self.limit)) }
        self.to = to.map { String($0.prefix(Self.limit)) }
    }

    private enum CodingKeys: String, CodingKey { case field, from, to }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(field, forKey: .field)
        try container.encode(from, forKey: .from)
        try container.encode(to, forKey: .to)
    }
}

extension TaskSpecification {
    /// Returns the fields that have another value in `other`. Neither specification may contain secrets.
    package func differences(to other: TaskSpecification) -> [FieldDifference] {
        let fields = withMemory { values in
            other.withMemory { others in
                TaskField.ofJSON.filter { !$0.isAbbreviation && $0.operations.differs(values, others) }
            }
        }
        return fields.map { field in
            let isSecret = field.secrecy == .value
            return FieldDifference(
                field: field.word, from: isSecret ? nil : text(of: field), to: isSecret ? nil : other.text(of: field))
        }
    }

    /// Returns the value as text: a string as it is, otherwise its JSON; `nil` if there is none.
    private func text(of field: TaskField) -> String? {
        guard let json = try? JSONEncoder().encode(OneField(specification: self, field: field)) else { return nil }
        if let text = try? JSONDecoder().decode([String: String].self, from: json) { return text[field.name] }
        // The object has one field: `{"name":VALUE}`.
        return String(decoding: json.dropFirst(field.name.utf8.count + 4).dropLast(), as: UTF8.self)
    }
}

extension TaskField {
    /// Whether the field is another way to write the value of a field of its own.
    fileprivate var isAbbreviation: Bool { if case .now = syntax { true } else { false } }
}

/// The JSON object of a single field.
private struct OneField: Encodable {
    let specification: TaskSpecification
    let field: TaskField

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        try specification.withMemory { try field.operations.encode($0, &container, field.jsonKey) }
    }
}
