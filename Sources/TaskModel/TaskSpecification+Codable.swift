extension TaskSpecification: Codable {
    package enum Field: String, CodingKey, CaseIterable {
        case kind, url, metalink, mirrors, output, directory, file, method, contentType, form, fileField
        case checksum, checksumURL, size
        case pieceHashes, connections, limit, headers, user, password, cookies
        case userAgent, referer, proxy, caCertificates, priority, maxSize, startAt, startAtText, afterTask
        case onConflict, noMtime, shared, descriptor
        case batch, key, paused
        /// An alternative to `priority: now`. It is decoded only, never encoded.
        case now
    }

    /// Decodes a specification from a JSON object.
    ///
    /// - Throws: ``FieldError`` for an unknown key, a value of the wrong type, or a missing URL.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        func value<Value: Decodable>(_ key: AnyKey, _ expected: String) throws -> Value? {
            do {
                return try container.decodeIfPresent(Value.self, forKey: key)
            } catch {
                throw FieldError(field: key.stringValue, message: "must be \(expected)")
            }
        }
        func pieces(_ key: AnyKey) throws -> PieceHashes? {
            do {
                return try container.decodeIfPresent(PieceHashes.self, forKey: key)
            } catch let error as FieldError {
                throw FieldError(field: "\(key.stringValue).\(error.field)", message: error.message)
            } catch {
                throw FieldError(field: key.stringValue, message: "must be an object")
            }
        }
        func word<Value: Decodable & CaseIterable & RawRepresentable<String>>(_ key: AnyKey) throws -> Value? {
            try value(key, "one of " + Value.allCases.map(\.rawValue).joined(separator: ", "))
        }
        self.init(url: "")
        var hasURL = false
        var details = DetailValues.default
        // The loop runs over the keys that are present, since most tasks have few of the fields.
        for key in container.allKeys {
            switch Field(rawValue: key.stringValue) {
            case .kind: kind = try word(key) ?? kind
            case .url:
                guard let text: String = try value(key, "a string") else { continue }
                url = text
                hasURL = true
            case .metalink: details.metalink = try value(key, "true or false") ?? false
            case .output: output = try value(key, "a string")
            case .directory: directory = try value(key, "a string")
            case .file: details.file = try value(key, "a string")
            case .method: details.method = try value(key, "a string")
            case .contentType: details.contentType = try value(key, "a string")
            case .form: details.form = try value(key, "an array of strings, NAME=VALUE") ?? []
            case .fileField: details.fileField = try value(key, "a string")
            case .checksum: details.checksum = try value(key, "a string")
            case .mirrors: details.mirrors = try value(key, "an array of strings") ?? []
            case .checksumURL: details.checksumURL = try value(key, "a string")
            case .size: details.size = try value(key, "a whole number of bytes")
            case .pieceHashes: details.pieceHashes = try pieces(key)
            case .connections: details.connections = try value(key, ConnectionCount.expectation)
            case .limit: details.limit = try value(key, "a whole number of bytes a second")
            case .headers: details.headers = try value(key, "an array of strings") ?? []
            case .user: details.user = try value(key, "a string")
            case .password: details.password = try value(key, "a string")
            case .cookies: details.cookies = try value(key, "a string")
            case .userAgent: details.userAgent = try value(key, "a string")
            case .referer: details.referer = try value(key, "a string")
            case .proxy: details.proxy = try value(key, "a string")
            case .caCertificates: details.caCertificates = try value(key, "a string")
            case .priority: priority = try word(key) ?? priority
            case .maxSize: details.maxSize = try value(key, "a whole number of bytes")
            case .startAt: details.startAt = try value(key, "a whole number of milliseconds since 1970")
            case .startAtText: details.startAtText = try value(key, "a string")
            case .afterTask: details.afterTask = try value(key, "a task's id")
            case .onConflict: details.onConflict = try word(key)
            case .noMtime: details.noMtime = try value(key, "true or false") ?? false
            case .shared: details.shared = try value(key, "true or false") ?? false
            case .descriptor: details.descriptor = try value(key, "the number of a file of the last source.receive")
            case .batch: batch = try value(key, "a string")
            case .key: self.key = try value(key, "a string")
            case .paused: details.paused = try value(key, "true or false") ?? false
            case .now: if try value(key, "true or false") ?? false { priority = .now }
            case nil:
                let nearest = NearestWord.to(key.stringValue, among: Field.allCases.map(\.rawValue))
                throw FieldError(
                    field: key.stringValue,
                    message: "is not a field of a task" + (nearest.map { "; did you mean \($0)?" } ?? ""))
            }
        }
        if details != .default { change { $0 = details } }
        guard hasURL else { throw FieldError(field: "url", message: "is missing") }
    }

    /// Encodes only the values that differ from the defaults.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Field.self)
        if kind != .download { try container.encode(kind, forKey: .kind) }
        try container.encode(url, forKey: .url)
        try container.encodeIfPresent(output, forKey: .output)
        try container.encodeIfPresent(directory, forKey: .directory)
        if priority != .normal { try container.encode(priority, forKey: .priority) }
        try container.encodeIfPresent(batch, forKey: .batch)
        try container.encodeIfPresent(key, forKey: .key)
        if isPlain { return }
        if metalink { try container.encode(metalink, forKey: .metalink) }
        if !mirrors.isEmpty { try container.encode(mirrors, forKey: .mirrors) }
        try container.encodeIfPresent(file, forKey: .file)
        try container.encodeIfPresent(method, forKey: .method)
        try container.encodeIfPresent(contentType, forKey: .contentType)
        if !form.isEmpty { try container.encode(form, forKey: .form) }
        try container.encodeIfPresent(fileField, forKey: .fileField)
        try container.encodeIfPresent(checksum, forKey: .checksum)
        try container.encodeIfPresent(checksumURL, forKey: .checksumURL)
        try container.encodeIfPresent(size, forKey: .size)
        try container.encodeIfPresent(pieceHashes, forKey: .pieceHashes)
        try container.encodeIfPresent(connections, forKey: .connections)
        try container.encodeIfPresent(limit, forKey: .limit)
        if !headers.isEmpty { try container.encode(headers, forKey: .headers) }
        try container.encodeIfPresent(user, forKey: .user)
        try container.encodeIfPresent(password, forKey: .password)
        try container.encodeIfPresent(cookies, forKey: .cookies)
        try container.encodeIfPresent(userAgent, forKey: .userAgent)
        try container.encodeIfPresent(referer, forKey: .referer)
        try container.encodeIfPresent(proxy, forKey: .proxy)
        try container.encodeIfPresent(caCertificates, forKey: .caCertificates)
        try container.encodeIfPresent(maxSize, forKey: .maxSize)
        try container.encodeIfPresent(startAt, forKey: .startAt)
        try container.encodeIfPresent(startAtText, forKey: .startAtText)
        try container.encodeIfPresent(afterTask, forKey: .afterTask)
        try container.encodeIfPresent(onConflict, forKey: .onConflict)
        if noMtime { try container.encode(noMtime, forKey: .noMtime) }
        if shared { try container.encode(shared, forKey: .shared) }
        try container.encodeIfPresent(descriptor, forKey: .descriptor)
        if paused { try container.encode(paused, forKey: .paused) }
    }
}
