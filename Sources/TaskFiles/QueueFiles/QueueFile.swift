package import TaskModel

/// The contents of a file of tasks.
package struct QueueFile: Sendable, Equatable {
    /// The batch name of the tasks; it is also part of each entry's specification.
    package var batch: String?
    /// The entries in the file's order, downloads and uploads as they occur. For a YAML queue file, no two are the same
    /// task.
    package var entries: [QueueEntry]
    /// Whether the entries' directories lie beneath the directory that the caller names; otherwise they replace it.
    package var nestsDirectories = false
    /// Notes about ignored contents, in the file's order.
    package var notes: [FileNote] = []

    package init(batch: String? = nil, entries: [QueueEntry] = []) {
        self.batch = batch
        self.entries = entries
    }

    package enum Limit {
        package static let entries = 1_000_000
    }

    /// Returns the key in an entry for a field of ``TaskSpecification``.
    package static func key(ofField field: String) -> String { QueueKeys.key(ofField: field) }

    /// Returns the default batch name for a file: `nightly` for `queues/nightly.yaml`.
    package static func batch(ofPath path: String) -> String {
        let name = path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return String(name) }
        return String(name[..<dot])
    }

    /// Parses the YAML of a queue file; an empty one has no entries.
    ///
    /// - Parameters:
    ///   - file: the name to print in messages.
    ///   - baseDirectory: the absolute base of relative file paths.
    ///   - now: the current time, to which a `start-at` is relative.
    ///   - utcOffset: returns the offset of local time from UTC in seconds at a given time, for a `start-at` without a
    ///     zone.
    ///   - readFile: reads the separate files for passwords, headers and certificates.
    /// - Throws: ``FileError`` for the faults in the file: a key that is unknown, duplicate or not supported, an
    ///   invalid value, a file that cannot be read, or a second entry for the same task.
    package init(
        parsing text: String, file: String, baseDirectory: String, now: Milliseconds,
        utcOffset: @escaping @Sendable (Milliseconds) -> Int, readFile: @escaping ReadFile
    ) throws(FileError) {
        self.init()
        let source = YAMLSource(text, file: file)
        guard let root = try source.compose() else { return }
        let moment = Moment(now: now, utcOffset: utcOffset)
        if let parts = root.mapping(QueueKeys.top, "a mapping with downloads, uploads or both") {
            batch = Self.readBatch(parts["batch"])
            let defaults = parts["defaults"]?.mapping(QueueKeys.defaults)
            let files = NamedFiles(readFile)
            var seen: [QueueEntry.Identity: Int] = [:]
            for part in parts.values where part.name == "downloads" || part.name == "uploads" {
                let reader = QueueEntryReader(
                    kind: part.name == "downloads" ? .download : .upload, batch: batch, defaults: defaults,
                    baseDirectory: baseDirectory, moment: moment, files: files)
                for value in part.list("a list; begin each entry with a dash") ?? [] {
                    guard entries.count < Limit.entries else {
                        value.reportEntry("exceeds the limit of \(Limit.entries) entries per file")
                        break
                    }
                    guard let entry = reader.read(value) else { continue }
                    if let line = seen[entry.identity] {
                        value.reportEntry("is the same task as the one at line \(line); give it a key of its own")
                    } else {
                        seen[entry.identity] = entry.line
                        entries.append(entry)
                    }
                }
            }
        }
        try source.throwFaults()
    }

    private static func readBatch(_ value: YAMLValue?) -> String? {
        guard let value, let batch = value.text("a name") else { return nil }
        // The name is validated by the rule for a task's batch, even if the file has no entries.
        var task = TaskSpecification(url: "http://localhost/")
        task.batch = batch
        do {
            try task.check()
            return batch
        } catch {
            value.report(error.message, code: error.code)
            return nil
        }
    }
}
