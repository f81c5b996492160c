import TaskModel

/// What a file of tasks asks for.
package struct QueueFile: Sendable, Equatable {
    /// The name that the tasks carry; it stands in each entry's specification too.
    package var batch: String?
    /// In the file's order, downloads and uploads as they come; no two are the same task.
    package var entries: [QueueEntry]
    /// The directories of the entries lie beneath the one that the caller names; otherwise they stand in its place.
    package var nestsDirectories = false
    /// What was passed over, in the file's order.
    package var notes: [FileNote] = []

    package init(batch: String? = nil, entries: [QueueEntry] = []) {
        self.batch = batch
        self.entries = entries
    }

    package enum Limit {
        package static let entries = 1_000_000
    }

    /// The key under which a field of ``TaskSpecification`` stands in an entry.
    package static func key(ofField field: String) -> String { QueueKeys.key(ofField: field) }

    /// The batch that a file stands for where nobody names one: `nightly` for `queues/nightly.yaml`.
    package static func batch(ofPath path: String) -> String {
        let name = path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return String(name) }
        return String(name[..<dot])
    }

    /// Reads the YAML of a queue file; an empty one asks for nothing.
    ///
    /// - Parameters:
    ///   - file: the name to print in messages.
    ///   - baseDirectory: absolute; where the relative paths of files begin.
    ///   - now: the moment that `start-at` counts from.
    ///   - utcOffset: seconds that local clocks are ahead of UTC at a moment, for a `start-at` without a zone.
    ///   - readFile: for passwords, headers and certificates that stand in files of their own.
    /// - Throws: ``FileError``, the first in the file: a key that is not known, given twice or not carried out, a
    ///   value that no task takes, a file that cannot be read, or a second entry for the same task.
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
                        value.reportEntry("is more than the \(Limit.entries) that one file may hold")
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
        try source.throwFirstFault()
    }

    private static func readBatch(_ value: YAMLValue?) -> String? {
        guard let value, let batch = value.text("a name") else { return nil }
        // The name is judged by the rule of the tasks that carry it, even where there are none.
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

/// What a time without a date or a zone counts from.
struct Moment: Sendable {
    var now: Milliseconds
    var utcOffset: @Sendable (Milliseconds) -> Int
}
