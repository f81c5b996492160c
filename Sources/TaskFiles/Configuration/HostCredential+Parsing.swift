import TaskModel

extension HostCredential {
    /// Parses the YAML of a file with one credential.
    ///
    /// - Parameter file: the path, for messages.
    /// - Throws: ``FileError`` for the faults. Their messages do not quote the file, since any word of it may be a
    ///   secret.
    package init(parsing text: String, file: String) throws(FileError) {
        let source = YAMLSource(text, file: file)
        let root: YAMLValue?
        do throws(FileError) {
            root = try source.compose()
        } catch {
            // The name of a key that is given twice is quoted.
            var error = error
            if error.message.utf8.contains(UInt8(ascii: "\"")) { error.message = "a key is given twice" }
            throw error
        }
        guard let root else { throw FileError(file: file, at: Position(), "is empty; \(Self.expectation)") }
        let isMapping = root.shape == .mapping
        if !isMapping { root.reportBare("must be a mapping; \(Self.expectation)") }
        let draft = isMapping ? Self.draft(root) : nil
        try source.throwFaults()
        guard let draft else { throw FileError(file: file, at: Position(), Self.expectation) }
        self = draft
    }

    /// The keys of the file.
    private enum Key: String, CaseIterable {
        case user, password, bearer, certificate, key, passphrase
        case sshKey = "sftp-key"
    }

    private static let expectation =
        "write {user, password}, {bearer}, {certificate, key} or {user, sftp-key}, each key with its value"

    private static func draft(_ root: YAMLValue) -> HostCredential? {
        var values: [Key: YAMLValue] = [:]
        for value in root.entries(atMost: 16, expectation) {
            guard let key = Key(rawValue: value.name) else {
                value.reportUnnamedKey(
                    "is not a key of a credential; the keys are "
                        + Key.allCases.map(\.rawValue).joined(separator: ", "))
                return nil
            }
            values[key] = value
        }
        func value(_ key: Key, _ read: (YAMLValue) -> String?) -> String? {
            guard let value = values.removeValue(forKey: key) else {
                root.reportBare("has no \"\(key.rawValue)\"; \(expectation)")
                return nil
            }
            return read(value)
        }
        func readPassphrase() -> String? { values[.passphrase] == nil ? nil : value(.passphrase) { $0.line() } }
        let credential: HostCredential?
        if values[.bearer] != nil {
            credential = value(.bearer) { $0.token() }.map { .bearer($0) }
        } else if values[.certificate] != nil || values[.key] != nil {
            let certificate = value(.certificate) { $0.pem("CERTIFICATE") }
            let isEncryptable = values[.passphrase] != nil
            let key = value(.key) { $0.privateKey(isEncryptable: isEncryptable) }
            let passphrase = readPassphrase()
            credential = certificate.flatMap { certificate in
                key.map { .certificate(certificate, key: $0, passphrase: passphrase) }
            }
        } else if values[.sshKey] != nil {
            let user = value(.user) { $0.user() }
            let isEncryptable = values[.passphrase] != nil
            let key = value(.sshKey) { $0.privateKey(isEncryptable: isEncryptable) }
            let passphrase = readPassphrase()
            credential = user.flatMap { user in key.map { .sshKey(user: user, key: $0, passphrase: passphrase) } }
        } else {
            let user = value(.user) { $0.user() }
            let password = value(.password) { $0.line() }
            credential = user.flatMap { user in password.map { .password(user: user, password: $0) } }
        }
        for value in values.values { value.report("does not belong to the other keys; \(expectation)") }
        return credential
    }
}

extension YAMLValue {
    /// Returns a text without control characters.
    fileprivate func line() -> String? {
        guard let text = text() else { return nil }
        guard !text.isEmpty, text.utf8.count <= 4_096, !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            report("must be 1 to 4,096 bytes without control characters")
            return nil
        }
        return text
    }

    /// Returns the name of a user. A colon would end it in the Basic scheme (RFC 7617, section 2).
    fileprivate func user() -> String? {
        guard let user = line() else { return nil }
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            report("must not contain a colon; the password has a key of its own")
            return nil
        }
        return user
    }

    /// Returns a bearer token (RFC 6750, section 2.1), which has visible ASCII characters only.
    fileprivate func token() -> String? {
        guard let token = text() else { return nil }
        guard (1...16_384).contains(token.utf8.count), token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            report("must be visible ASCII characters without spaces")
            return nil
        }
        return token
    }

    /// Returns a text in PEM (RFC 7468).
    ///
    /// - Parameter label: the end of the label in its first line.
    fileprivate func pem(_ label: String) -> String? {
        guard let text = text("text in PEM") else { return nil }
        let lines = text.split(separator: "\n")
        guard lines.count >= 3, lines.contains(where: { $0.hasPrefix("-----BEGIN ") && $0.hasSuffix("\(label)-----") })
        else {
            report("must be text in PEM with its line breaks: write | after the key and indent the lines")
            return nil
        }
        return text.hasSuffix("\n") ? text : text + "\n"
    }

    /// Returns a private key.
    ///
    /// - Parameter isEncryptable: whether there is a passphrase. Without one, OpenSSL would ask the terminal.
    fileprivate func privateKey(isEncryptable: Bool) -> String? {
        guard let text = pem("PRIVATE KEY") else { return nil }
        guard isEncryptable || !text.contains("ENCRYPTED") else {
            report("is encrypted; add \"passphrase\"")
            return nil
        }
        return text
    }
}
