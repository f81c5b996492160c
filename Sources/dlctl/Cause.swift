import TaskModel

/// Short phrases for error codes, as lists and bars show them: `name does not resolve`, `server answers 503`.
enum Cause {
    /// Every code but those of an HTTP status, `connect` and `io`, whose phrases depend on more than the code.
    private static let phrases: [ErrorCode: String] = [
        .dns: "name does not resolve",
        .connect: "connection fails",
        .tls: "TLS fails",
        .timeout: "no connection in time",
        .stalled: "no bytes arrive",
        .truncated: "connection breaks off",
        .tooManyRedirects: "too many redirects",
        .protocolNotAllowed: "protocol not allowed",
        .addressNotAllowed: "address not allowed",
        .checksumMismatch: "checksum does not match",
        .checksumMissing: "checksum is not in the list",
        .dependency: "the task before it did not complete",
        .remoteChanged: "file on the server changed",
        .notResumable: "server cannot resume",
        .nameConflict: "file name is taken",
        .pathNotAllowed: "path not allowed",
        .diskFull: "disk full",
        .permissionDenied: "permission denied",
        .io: "input/output error",
        .sourceChanged: "source file changed",
        .tooLarge: "file too large",
        .quota: "quota exceeded",
        .invalid: "invalid",
        .internal: "internal error",
    ]

    /// A code alone; one that this program does not know reads as its own words.
    static func phrase(_ code: ErrorCode) -> String {
        if let phrase = phrases[code] { return phrase }
        if code.rawValue.hasPrefix("http-") { return "server answers \(code.rawValue.dropFirst(5))" }
        return words(code.rawValue)
    }

    /// An error with what its message adds to the code: the port that refuses.
    static func phrase(_ error: TaskFailure) -> String {
        guard error.code == .connect else { return phrase(error.code) }
        return refusal(in: error.message) ?? phrase(error.code)
    }

    /// `port 8080 refuses the connection`, out of the engine's `port 8080 of example.org refuses the connection: …`.
    private static func refusal(in message: String) -> String? {
        let refuses = " refuses the connection"
        guard let end = message.firstRange(of: refuses)?.lowerBound else { return nil }
        let subject = Array(message[..<end].split(separator: " ").suffix(4))
        if subject.count == 4, subject[0] == "port", subject[2] == "of", UInt16(subject[1]) != nil {
            return "port \(subject[1])" + refuses
        }
        return subject.dropLast().last == "proxy" ? "proxy" + refuses : nil
    }

    /// A reason to wait that has no phrase of its own: the disk's, or one that this program does not know.
    ///
    /// - Parameter word: the reason's.
    static func phrase(_ word: String, _ error: TaskFailure?) -> String {
        guard let error else { return words(word) }
        switch error.code {
        // What they stand for is many things, and the message says which.
        case .io, .permissionDenied, .pathNotAllowed, .internal, .invalid:
            let message = error.message.split(separator: ";", maxSplits: 1).first.map(String.init) ?? ""
            return message.isEmpty ? phrase(error) : message
        default: return phrase(error)
        }
    }

    /// What a person is needed for.
    static func phrase(pausedFor reason: TaskReason) -> String {
        switch reason {
        case .urlExpired: "the URL has expired"
        case .auth: "the server refuses access"
        case .sourceChanged: "the source file changed"
        default: words(reason.rawValue)
        }
    }

    /// `disk-full` → `disk full`
    private static func words(_ word: String) -> String {
        String(word.map { $0 == "-" ? " " : $0 })
    }
}
