import HTTPTypes

/// A request as a command for the curl program, fit for a log: what only its sender should know is left out.
enum CurlCommand {
    /// Fields that hold what proves who asks, their names in lower case.
    static let secret: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token", "x-amz-security-token",
    ]

    static func text(for request: TransferRequest) -> String {
        var words = ["curl", "-i"]
        if request.method == .head { words.append("--head") } else if request.method != .get {
            words += ["-X", request.method.rawValue]
        }
        for field in request.headerFields {
            let value = secret.contains(field.name.canonicalName) ? "…" : field.value
            words += ["-H", quoted("\(field.name): \(value)")]
        }
        if request.credential != nil { words += ["-u", "…"] }
        words.append(quoted(URLRedaction.redact(request.url)))
        return words.joined(separator: " ")
    }

    /// For a shell: nothing within single quotes means anything but the quote itself.
    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
