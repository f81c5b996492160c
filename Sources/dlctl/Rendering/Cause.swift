import TaskModel

/// Short phrases for error codes in lists and bars, such as `name does not resolve` and `server replied 503`.
enum Cause {
    /// The phrases of the error codes, except HTTP statuses. For `connect` and `io` the phrase may depend on the
    /// message.
    private static let phrases: [ErrorCode: String] = [
        .dns: "name does not resolve",
        .connect: "cannot connect",
        .tls: "TLS error",
        .timeout: "connection timed out",
        .stalled: "transfer stalled",
        .truncated: "connection lost",
        .tooManyRedirects: "too many redirects",
        .protocolNotAllowed: "protocol not allowed",
        .addressNotAllowed: "address not allowed",
        .checksumMismatch: "checksum does not match",
        .checksumMissing: "checksum is not in the list",
        .dependency: "the task it depends on did not complete",
        .remoteChanged: "file on the server changed",
        .notResumable: "server cannot resume",
        .nameConflict: "file name already exists",
        .pathNotAllowed: "path not allowed",
        .diskFull: "disk full",
        .permissionDenied: "permission denied",
        .io: "input/output error",
        .sourceChanged: "source file changed",
        .sourceLost: "open source file was closed",
        .tooLarge: "file too large",
        .quota: "quota exceeded",
        .invalid: "invalid",
        .internal: "internal error",
    ]

    /// Returns the phrase for a code. A code unknown to this program is shown as its own words.
    static func phrase(_ code: ErrorCode) -> String {
        if let phrase = phrases[code] { return phrase }
        if code.rawValue.hasPrefix("http-") { return "server replied \(code.rawValue.dropFirst(5))" }
        return words(code.rawValue)
    }

    /// Returns the phrase for an error with details from its message, such as the port that refuses the connection.
    static func phrase(_ error: TaskFailure) -> String {
        if error.tellsOfMissingSource { return "source file is gone" }
        guard error.code == .connect else { return phrase(error.code) }
        return refusal(in: error.message) ?? phrase(error.code)
    }

    /// Extracts `port 8080 refuses the connection` from the engine's message `port 8080 of example.org refuses the
    /// connection: …`.
    private static func refusal(in message: String) -> String? {
        let refuses = " refuses the connection"
        guard let end = message.firstRange(of: refuses)?.lowerBound else { return nil }
        let subject = Array(message[..<end].split(separator: " ").suffix(4))
        if subject.count == 4, subject[0] == "port", subject[2] == "of", UInt16(subject[1]) != nil {
            return "port \(subject[1])" + refuses
        }
        return subject.dropLast().last == "proxy" ? "proxy" + refuses : nil
    }

    /// Returns the phrase for a waiting reason without a phrase of its own: a disk reason, or one unknown to this
    /// program.
    ///
    /// - Parameter word: the word of the reason.
    static func phrase(_ word: String, _ error: TaskFailure?) -> String {
        guard let error else { return words(word) }
        switch error.code {
        // These codes cover many causes; the message states which.
        case .io, .permissionDenied, .pathNotAllowed, .internal, .invalid:
            let message = error.message.split(separator: ";", maxSplits: 1).first.map(String.init) ?? ""
            return message.isEmpty ? phrase(error) : message
        default: return phrase(error)
        }
    }

    /// Returns the phrase for a pause that needs user action.
    static func phrase(pausedFor reason: TaskReason, _ error: TaskFailure? = nil) -> String {
        switch reason {
        case .urlExpired: "the URL has expired"
        case .auth where error?.message.hasPrefix("the proxy ") == true: "the proxy refuses access"
        case .auth where error?.tellsOfMissingLogin == true: "a login is needed"
        case .auth: "the server refuses access"
        case .sourceChanged where error?.tellsOfMissingSource == true: "the source file is gone"
        case .sourceChanged where error?.code == .sourceLost: "the open source file was closed"
        case .sourceChanged: "the source file changed"
        default: words(reason.rawValue)
        }
    }

    /// Replaces hyphens with spaces: `disk-full` → `disk full`.
    private static func words(_ word: String) -> String {
        String(word.map { $0 == "-" ? " " : $0 })
    }
}
