extension TaskChanges: Codable {
    package enum Field: String, CodingKey, CaseIterable {
        case url, output, connections, limit, headers, priority, startAt
        case directory, user, password, checksum, mirrors
    }

    /// Decodes the changes from a JSON object.
    ///
    /// - Throws: ``FieldError`` for an unknown or unchangeable field, or for a value of the wrong type.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        func change<Value: Decodable & Equatable & Sendable>(
            _ key: AnyKey, _ expected: String
        ) throws -> Change<Value> {
            do {
                if try container.decodeNil(forKey: key) { return .takeBack }
                return .set(try container.decode(Value.self, forKey: key))
            } catch {
                throw FieldError(field: key.stringValue, message: "must be \(expected), or null")
            }
        }
        self.init()
        for key in container.allKeys {
            switch Field(rawValue: key.stringValue) {
            case .url:
                guard let text = try? container.decode(String.self, forKey: key) else {
                    throw FieldError(field: "url", message: "must be a string")
                }
                url = text
            case .output: output = try change(key, "a string")
            case .connections: connections = try change(key, ConnectionCount.expectation)
            case .limit: limit = try change(key, "a whole number of bytes a second")
            case .headers: headers = try change(key, "an array of strings")
            case .priority:
                priority = try change(
                    key, "one of " + TaskPriority.allCases.map(\.rawValue).joined(separator: ", "))
            case .startAt: startAt = try change(key, "a whole number of milliseconds since 1970")
            case .directory: directory = try change(key, "a string")
            case .user: user = try change(key, "a string")
            case .password: password = try change(key, "a string")
            case .checksum: checksum = try change(key, "a string")
            case .mirrors: mirrors = try change(key, "an array of strings")
            case nil: throw Self.unknown(key.stringValue)
            }
        }
    }

    private static func unknown(_ name: String) -> FieldError {
        let changeable = Field.allCases.map(\.rawValue)
        if TaskSpecification.Field(rawValue: name) != nil {
            return FieldError(
                field: name,
                message: "cannot be changed once the task is there; only \(changeable.joined(separator: ", ")) can")
        }
        let nearest = NearestWord.to(name, among: changeable)
        return FieldError(
            field: name,
            message: "is not a field that can be changed" + (nearest.map { "; did you mean \($0)?" } ?? ""))
    }

    /// Encodes only the fields that change.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Field.self)
        func encode(_ change: Change<some Encodable>?, _ field: Field) throws {
            switch change {
            case nil: break
            case .takeBack: try container.encodeNil(forKey: field)
            case .set(let value): try container.encode(value, forKey: field)
            }
        }
        try container.encodeIfPresent(url, forKey: .url)
        try encode(output, .output)
        try encode(connections, .connections)
        try encode(limit, .limit)
        try encode(headers, .headers)
        try encode(priority, .priority)
        try encode(startAt, .startAt)
        try encode(directory, .directory)
        try encode(user, .user)
        try encode(password, .password)
        try encode(checksum, .checksum)
        try encode(mirrors, .mirrors)
    }
}
