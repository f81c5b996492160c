import HTTPTypes

/// A request as a command line for the curl program, fit for a log: values that may be secrets are omitted.
enum CurlCommand {
    static func text(for request: TransferRequest) -> String {
        var words = ["curl", "-i"]
        if request.method == .head {
            words.append("--head")
        } else if request.method != .get {
            words += ["-X", request.method.rawValue]
        }
        for field in request.headerFields {
            let value = FieldRedaction.value(of: field)
            words += ["-H", quoted("\(field.name): \(value)")]
        }
        if request.credential != nil { words += ["-u", "…"] }
        words.append(quoted(URLRedaction.redact(request.url)))
        return words.joined(separator: " ")
    }

    /// Quotes a word for a shell: within single quotes only the quote itself is special.
    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
