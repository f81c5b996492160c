import HTTPTypes

/// The field lines of a request as libcurl is given them.
enum SentFields {
    /// - Parameters:
    ///   - engineFields: lines of the engine's own.
    ///   - isAuthorized: a challenge has been answered; see ``RequestOptions/isAuthorized``.
    static func lines(
        of request: TransferRequest, _ configuration: SessionConfiguration, engineFields: [String], isAuthorized: Bool
    ) -> [String] {
        var lines: [String] = []
        let hasAgent = names(.userAgent, request, configuration)
        // What the engine says it says alone: two fields of a name would contradict each other.
        let engineNames = Set(engineFields.map(name))
        let own = isAuthorized ? nil : ownAuthorization(of: request)
        if let own { lines.append("Authorization: \(own)") }
        for field in request.headerFields {
            if field.name == .authorization, isAuthorized || own != nil { continue }
            if engineNames.contains(field.name.canonicalName) { continue }
            // libcurl takes `Name;` for a field without a value; `Name:` would remove it.
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        for line in additional(to: request, configuration) {
            let name = name(of: line)
            if engineNames.contains(name) || request.headerFields.contains(where: { $0.name.canonicalName == name }) {
                continue
            }
            if name == HTTPField.Name.authorization.canonicalName, isAuthorized || own != nil { continue }
            lines.append(line)
        }
        if !hasAgent { lines.append("User-Agent: \(configuration.userAgent)") }
        return lines + engineFields
    }

    /// Whether the request carries a field of this name, of its own or of the session's.
    static func names(
        _ name: HTTPField.Name, _ request: TransferRequest, _ configuration: SessionConfiguration
    ) -> Bool {
        request.headerFields[name] != nil
            || additional(to: request, configuration).contains { Self.name(of: $0) == name.canonicalName }
    }

    /// The session's fields. Whoever a redirect leads to was not chosen by the one who set them.
    private static func additional(to request: TransferRequest, _ configuration: SessionConfiguration) -> [String] {
        guard request.hasLeftOrigin else { return configuration.additionalHeaders }
        return configuration.additionalHeaders.filter { RedirectRule.isHarmless(name(of: $0)) }
    }

    /// Whether a field line is for a proxy alone.
    static func isForProxy(_ line: String) -> Bool {
        ["proxy-authorization", "proxy-connection"].contains(name(of: line))
    }

    /// In lower case.
    private static func name(of line: String) -> String {
        let name = line.utf8.prefix { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: ";") }
        return String(Substring(name)).lowercased()
    }

    /// The value of `Authorization` where the request has a credential and nobody was asked for another.
    private static func ownAuthorization(of request: TransferRequest) -> String? {
        guard let credential = request.credential else { return nil }
        return switch credential.kind {
        case .password: BasicAuthorization.fieldValue(for: credential)
        case .bearer(let token): "Bearer \(token)"
        case .privateKey: nil
        }
    }

    /// What such lines say; one that names no field is left out.
    static func fields(_ lines: [String]) -> HTTPFields {
        var fields = HTTPFields()
        for line in lines {
            let bytes = line.utf8
            guard let end = bytes.firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ";") }),
                let name = HTTPField.Name(String(line[..<end]))
            else { continue }
            let value = FieldText.trimmed(bytes[bytes.index(after: end)...])
            fields.append(HTTPField(name: name, value: String(decoding: value, as: UTF8.self)))
        }
        return fields
    }
}
