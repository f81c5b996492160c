import HTTPTypes

/// The header field lines of a request as passed to libcurl.
enum SentFields {
    /// Returns the field lines of a request.
    ///
    /// - Parameters:
    ///   - engineFields: lines added by the engine.
    ///   - isAuthorized: whether a challenge has been answered; see ``RequestOptions/isAuthorized``.
    ///   - sendsBody: whether the request has a body.
    static func lines(
        of request: TransferRequest, _ configuration: SessionConfiguration, engineFields: [String], isAuthorized: Bool,
        sendsBody: Bool = true
    ) -> [String] {
        var lines: [String] = []
        let hasAgent = names(.userAgent, request, configuration)
        // Engine fields replace fields of the same name: two values would contradict each other.
        let engineNames = engineFields.isEmpty ? [] : Set(engineFields.map(name))
        let own = isAuthorized ? nil : ownAuthorization(of: request)
        if let own { lines.append("Authorization: \(own)") }
        for field in request.headerFields {
            if field.name == .authorization, isAuthorized || own != nil { continue }
            if engineNames.contains(field.name.canonicalName) { continue }
            if isFraming(field.name.canonicalName, field.value, sendsBody: sendsBody) { continue }
            // libcurl takes `Name;` for a field with an empty value; `Name:` would remove the field.
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        for line in additional(to: request, configuration) {
            let name = name(of: line)
            if engineNames.contains(name) || request.headerFields.contains(where: { $0.name.canonicalName == name }) {
                continue
            }
            if name == HTTPField.Name.authorization.canonicalName, isAuthorized || own != nil { continue }
            if isFraming(name, value(of: line), sendsBody: sendsBody) { continue }
            lines.append(line)
        }
        if !hasAgent { lines.append("User-Agent: \(configuration.userAgent)") }
        return lines + engineFields
    }

    /// Returns whether a field states where the request ends (RFC 9112, section 6), which the engine alone does. A field
    /// that contradicts the body would make the server take a part of it for another request.
    ///
    /// - Parameter name: the name in lower case.
    private static func isFraming(_ name: String, _ value: @autoclosure () -> String, sendsBody: Bool) -> Bool {
        // The length of no body is right, and some servers ask for it.
        if name == "content-length" { return sendsBody || value() != "0" }
        return name == "transfer-encoding"
    }

    private static func value(of line: String) -> String {
        let rest = line.utf8.drop { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: ";") }.dropFirst()
        return String(decoding: FieldText.trimmed(Array(rest)), as: UTF8.self)
    }

    /// Returns whether the request has a field of this name, set by itself or by the session.
    static func names(
        _ name: HTTPField.Name, _ request: TransferRequest, _ configuration: SessionConfiguration
    ) -> Bool {
        request.headerFields[name] != nil
            || additional(to: request, configuration).contains { Self.name(of: $0) == name.canonicalName }
    }

    /// Returns the session's fields. After a redirect to another origin, only fields that do not identify the client
    /// remain, because their creator did not choose that server.
    private static func additional(to request: TransferRequest, _ configuration: SessionConfiguration) -> [String] {
        guard request.hasLeftOrigin else { return configuration.additionalHeaders }
        return configuration.additionalHeaders.filter { RedirectRule.isHarmless(name(of: $0)) }
    }

    /// Returns whether a line is a header field: a name (RFC 9110, section 5.1) with a colon and a value, or
    /// with a semicolon alone for an empty value. libcurl does not send a line without either, and the request fails if
    /// a line has a line end.
    static func isValid(_ line: String) -> Bool {
        let isText = line.unicodeScalars.allSatisfy { $0 == "\t" || $0.properties.generalCategory != .control }
        guard isText, let end = line.utf8.firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ";") }),
            HTTPField.Name(String(line[..<end])) != nil
        else { return false }
        return line.utf8[end] == UInt8(ascii: ":") || line.utf8.index(after: end) == line.endIndex
    }

    /// Returns whether a field line is for a proxy only.
    static func isForProxy(_ line: String) -> Bool {
        guard let first = line.utf8.first, first | 0x20 == UInt8(ascii: "p") else { return false }
        return ["proxy-authorization", "proxy-connection"].contains(name(of: line))
    }

    /// Returns the field name of a line in lower case.
    private static func name(of line: String) -> String {
        let name = line.utf8.prefix { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: ";") }
        return String(Substring(name)).lowercased()
    }

    /// Returns the `Authorization` value of the request's own credential, used if no challenge has been answered.
    private static func ownAuthorization(of request: TransferRequest) -> String? {
        guard let credential = request.credential else { return nil }
        return switch credential.kind {
        case .password where request.withholdsPassword: nil
        case .password: BasicAuthorization.fieldValue(for: credential)
        case .bearer(let token): "Bearer \(token)"
        case .privateKey, .privateKeyText: nil
        }
    }

    /// Parses field lines; lines without a valid name are omitted.
    static func fields(_ lines: [String]) -> HTTPFields {
        var fields = HTTPFields()
        for line in lines {
            let bytes = line.utf8
            guard let end = bytes.firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ";") }),
                let name = HTTPField.Name(String(line[..<end]))
            else { continue }
            let value = FieldText.trimmed(bytes[bytes.index(after: end)...])
            // `Name:` removes a field that libcurl would add.
            if value.isEmpty, bytes[end] == UInt8(ascii: ":") { continue }
            fields.append(HTTPField(name: name, value: String(decoding: value, as: UTF8.self)))
        }
        return fields
    }
}
