import HTTPTypes

/// Redaction of secrets in header fields.
enum FieldRedaction {
    /// Substrings of the names of fields whose values are, or may be, credentials.
    private static let secret = [
        "auth", "cookie", "key", "token", "secret", "password", "passwd", "credential", "signature", "session",
    ]
    /// The names of fields whose value is a URL.
    private static let urls = ["location", "content-location", "referer"]
    /// The names of fields whose value contains URLs among other text.
    private static let textsWithURLs = ["link", "refresh"]

    /// Returns whether the value of a field is, or may be, a secret.
    static func isSecret(_ name: HTTPField.Name) -> Bool {
        secret.contains { name.canonicalName.contains($0) }
    }

    /// Returns a header line as it may be shown; `…` in place of a line that is no field with a value.
    static func line(_ line: String) -> String {
        SentFields.fields([line]).first.map { "\($0.name): \(value(of: $0))" } ?? "…"
    }

    /// Returns the value of a field as it may be shown: `…` in place of a value that may be secret, and URLs without
    /// secrets.
    static func value(of field: HTTPField) -> String {
        let name = field.name.canonicalName
        if isSecret(field.name) || textsWithURLs.contains(name) { return "…" }
        return urls.contains(name) ? URLRedaction.redact(field.value) : field.value
    }
}
