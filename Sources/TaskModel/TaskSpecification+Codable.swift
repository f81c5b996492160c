extension TaskSpecification: Codable {
    package enum Field: String, CodingKey, CaseIterable {
        case kind, url, output, directory, file, method, contentType, checksum, headers, user, password
        case userAgent, referer, proxy, caCertificates, priority, maxSize, startAt, onConflict, noMtime
        case batch, key, paused
    }

    /// A key as it stands in the JSON, known or not.
    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private static let known = Set(Field.allCases.map(\.rawValue))

    /// - Throws: ``FieldError`` for a key that is not known or a value of another type.
    public init(from decoder: any Decoder) throws {
        for key in try decoder.container(keyedBy: AnyKey.self).allKeys where !Self.known.contains(key.stringValue) {
            let nearest = NearestWord.to(key.stringValue, among: Self.known)
            throw FieldError(
                field: key.stringValue,
                message: "is not a field of a task" + (nearest.map { "; did you mean \($0)?" } ?? ""))
        }
        let container = try decoder.container(keyedBy: Field.self)
        func value<Value: Decodable>(_ field: Field, _ expected: String) throws -> Value? {
            do {
                return try container.decodeIfPresent(Value.self, forKey: field)
            } catch {
                throw FieldError(field: field.rawValue, message: "must be \(expected)")
            }
        }
        func word<Value: Decodable & CaseIterable & RawRepresentable<String>>(_ field: Field) throws -> Value? {
            let words = Value.allCases.map(\.rawValue).joined(separator: ", ")
            return try value(field, "one of \(words)")
        }
        guard let url: String = try value(.url, "a string") else {
            throw FieldError(field: "url", message: "is missing")
        }
        self.init(kind: try word(.kind) ?? .download, url: url)
        output = try value(.output, "a string")
        directory = try value(.directory, "a string")
        file = try value(.file, "a string")
        method = try value(.method, "a string")
        contentType = try value(.contentType, "a string")
        checksum = try value(.checksum, "a string")
        headers = try value(.headers, "an array of strings") ?? []
        user = try value(.user, "a string")
        password = try value(.password, "a string")
        userAgent = try value(.userAgent, "a string")
        referer = try value(.referer, "a string")
        proxy = try value(.proxy, "a string")
        caCertificates = try value(.caCertificates, "a string")
        priority = try word(.priority) ?? .normal
        maxSize = try value(.maxSize, "a whole number of bytes")
        startAt = try value(.startAt, "a whole number of milliseconds since 1970")
        onConflict = try word(.onConflict)
        noMtime = try value(.noMtime, "true or false") ?? false
        batch = try value(.batch, "a string")
        key = try value(.key, "a string")
        paused = try value(.paused, "true or false") ?? false
    }

    /// Writes only what differs from the default.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Field.self)
        if kind != .download { try container.encode(kind, forKey: .kind) }
        try container.encode(url, forKey: .url)
        try container.encodeIfPresent(output, forKey: .output)
        try container.encodeIfPresent(directory, forKey: .directory)
        try container.encodeIfPresent(file, forKey: .file)
        try container.encodeIfPresent(method, forKey: .method)
        try container.encodeIfPresent(contentType, forKey: .contentType)
        try container.encodeIfPresent(checksum, forKey: .checksum)
        if !headers.isEmpty { try container.encode(headers, forKey: .headers) }
        try container.encodeIfPresent(user, forKey: .user)
        try container.encodeIfPresent(password, forKey: .password)
        try container.encodeIfPresent(userAgent, forKey: .userAgent)
        try container.encodeIfPresent(referer, forKey: .referer)
        try container.encodeIfPresent(proxy, forKey: .proxy)
        try container.encodeIfPresent(caCertificates, forKey: .caCertificates)
        if priority != .normal { try container.encode(priority, forKey: .priority) }
        try container.encodeIfPresent(maxSize, forKey: .maxSize)
        try container.encodeIfPresent(startAt, forKey: .startAt)
        try container.encodeIfPresent(onConflict, forKey: .onConflict)
        if noMtime { try container.encode(noMtime, forKey: .noMtime) }
        try container.encodeIfPresent(batch, forKey: .batch)
        try container.encodeIfPresent(key, forKey: .key)
        if paused { try container.encode(paused, forKey: .paused) }
    }
}
