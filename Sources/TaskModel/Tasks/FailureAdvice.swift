/// The advice for a person about a task that failed.
package enum FailureAdvice {
    /// The codes with which a task can fail, except HTTP statuses.
    package static let codes: [ErrorCode] = [
        .dns, .connect, .tls, .timeout, .stalled, .truncated, .tooManyRedirects, .protocolNotAllowed,
        .addressNotAllowed, .checksumMismatch, .checksumMissing, .dependency, .remoteChanged, .notResumable,
        .nameConflict, .pathNotAllowed, .diskFull, .permissionDenied, .io, .partInUse, .sourceChanged, .sourceLost,
        .tooLarge, .quota, .invalid, .internal,
    ]

    /// Returns the advice for an error code.
    ///
    /// - Parameters:
    ///   - task: the id of the task, or the word in its place where the advice is for several tasks.
    ///   - all: the ids of the tasks to retry; `nil` for `task`.
    package static func text(for code: ErrorCode, task: String, all: String? = nil) -> String {
        let (set, retry) = ("dlctl set \(task)", "dlctl retry \(all ?? task)")
        return switch code {
        case .dns: "check the name of the host (\(set) --url URL), or try again: \(retry)"
        case .connect, .timeout, .stalled, .truncated:
            "once the server answers: \(retry) (after \(set) --max-attempts 1000 it tries longer)"
        case .tls: "have the certificate or host key put right or trusted, then: \(retry)"
        case .tooManyRedirects, .protocolNotAllowed:
            "give the URL of the file itself (\(set) --url URL), or try again: \(retry)"
        case .addressNotAllowed: "have the configuration changed, then: \(retry)"
        case .checksumMismatch:
            "compare the digest with the one that the source tells and give the right one, or none "
                + "(\(set) --checksum ALGORITHM:HEX), or try again: \(retry)"
        case .checksumMissing: "give the digest, or none (\(set) --checksum ALGORITHM:HEX), or try again: \(retry)"
        case .dependency: "once that task has completed: \(retry)"
        case .remoteChanged: "once the file on the server stays the same: \(retry)"
        case .nameConflict:
            "let it have another name (\(set) --on-conflict rename, or --output NAME) or move the file that has it, "
                + "then: \(retry)"
        case .pathNotAllowed: "give another directory or name (\(set) --directory DIR --output NAME), then: \(retry)"
        case .diskFull: "make room, then: \(retry)"
        case .permissionDenied: "grant the access, then: \(retry)"
        case .io: "see to the file or disk, then: \(retry)"
        case .partInUse: "once the other process has ended: \(retry)"
        case .sourceChanged: "to send the file as it is now: \(retry)"
        case .sourceLost: "upload the file again"
        case .tooLarge:
            "allow a larger file (\(set) --max-size SIZE) or choose a directory with room (\(set) --directory DIR), "
                + "then: \(retry)"
        case .quota: "make room for the file, then: \(retry)"
        case .invalid: "correct what is invalid (\(set)), then: \(retry)"
        default: text(forStatus: code, set: set, retry: retry)
        }
    }

    /// Returns the advice on tasks that failed for the same cause.
    package static func text(for error: TaskFailure, tasks: [TaskID]) -> String {
        guard error.isOfChecksumList else { return text(for: error.code, tasks: tasks) }
        let ids = tasks.map(\.description).joined(separator: " ")
        let set = "dlctl set \(tasks.count == 1 ? ids : "ID")"
        return "check the list of checksums (\(set) --checksum-url URL), or try again: dlctl retry \(ids)"
    }

    /// Returns the advice on tasks that failed with the same code.
    package static func text(for code: ErrorCode, tasks: [TaskID]) -> String {
        let ids = tasks.map(\.description).joined(separator: " ")
        return text(for: code, task: tasks.count == 1 ? ids : "ID", all: ids)
    }

    private static func text(forStatus code: ErrorCode, set: String, retry: String) -> String {
        switch code.rawValue {
        case "http-404", "http-410": "check the URL (\(set) --url URL), or try again: \(retry)"
        case "http-501", "http-505": "check the URL and the options of the request (\(set)), or try again: \(retry)"
        case let word where word.hasPrefix("http-5") || word == "http-429": "once the server recovers: \(retry)"
        case let word where word.hasPrefix("http-"):
            "check the URL and the options of the request (\(set)), or try again: \(retry)"
        default: "to try again: \(retry)"
        }
    }
}
