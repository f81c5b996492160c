import TaskModel

/// The command-line names of a call's fields, for error messages that name what the user typed.
struct FieldNames {
    /// The URLs of the call, in the order of its tasks.
    var urls: [String] = []
    /// The mirrors of the call's only task.
    var mirrors: [String] = []
    /// The files of uploads as typed, in the order of the tasks.
    var files: [String] = []

    private static let options: [String: String] = {
        var options = [
            "filter.states": "--state", "filter.batch": "--batch", "filter.search": "--search",
            "filter.owner": "--owner", "limit": "--limit", "newest": "--limit", "after": "--after",
            "before": "--before", "order": "--queue",
            "deleteFile": "--delete-file", "prune": "--prune", "dryRun": "--dry-run",
        ]
        let words = Set(TaskField.all.filter { $0.option != nil }.map(\.word))
        for field in TaskField.all where words.contains(field.word) { options[field.name] = "--" + field.word }
        return options
    }()

    /// Translates an error message of the protocol.
    ///
    /// - Parameters:
    ///   - field: the protocol's name of the field, such as `output` or `tasks[3].headers[0]`.
    ///   - message: the message without the field's name.
    /// - Returns: the option or argument, and the message prefixed with it.
    func translate(field: String, message: String) -> (field: String, message: String) {
        let (index, plain) = Self.split(field)
        let name = String(plain.prefix { $0 != "[" })
        let url = index.flatMap { urls.indices.contains($0) ? urls[$0] : nil } ?? (urls.count == 1 ? urls[0] : nil)
        switch name {
        case "url":
            let shown = url.flatMap { $0.isEmpty ? nil : $0 } ?? "URL"
            return ("url", "\(shown): \(message)")
        case "mirrors":
            // In `mirrors[1]` the index is that of the mirror, not of the task.
            let index = Int(plain.dropFirst(name.count + 1).dropLast())
            let mirror = index.flatMap { mirrors.indices.contains($0) ? mirrors[$0] : nil } ?? ""
            return ("--mirror", "--mirror\(mirror.isEmpty ? "" : " " + mirror): \(message)")
        // `descriptor` is the file that dlctl opened and passed.
        case "file", "descriptor":
            let file = files.indices.contains(index ?? 0) ? files[index ?? 0] : "file"
            return ("file", message.contains(FilePath.absolute(file) ?? file) ? message : "\(file): \(message)")
        default:
            let option = Self.options[name] ?? plain
            guard urls.count > 1, let url else { return (option, "\(option): \(message)") }
            return (option, "\(option) for \(url): \(message)")
        }
    }

    /// Splits `tasks[3].output` into 3 and `output`, and `changes.output` into `nil` and `output`.
    static func split(_ field: String) -> (index: Int?, name: String) {
        if field.hasPrefix("changes.") { return (nil, String(field.dropFirst("changes.".count))) }
        for prefix in ["tasks[", "entries["] where field.hasPrefix(prefix) {
            let rest = field.dropFirst(prefix.count)
            guard let close = rest.firstIndex(of: "]"), let index = Int(rest[..<close]) else { break }
            let tail = rest[rest.index(after: close)...]
            return (index, tail.hasPrefix(".") ? String(tail.dropFirst()) : "")
        }
        return (nil, field)
    }
}
