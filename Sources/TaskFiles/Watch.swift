import TaskModel

/// A directory where files of tasks are dropped.
package struct Watch: Sendable, Equatable {
    /// Absolute, without a slash at its end.
    package var directory: String
    package var defaults: EntryDefaults

    package init(directory: String, defaults: EntryDefaults = EntryDefaults()) {
        self.directory = directory
        self.defaults = defaults
    }
}

/// What entries take that leave it open, said outside of their file with the keys of its `defaults`.
package struct EntryDefaults: Sendable, Equatable {
    /// Without a URL.
    private var download = TaskSpecification(url: "")
    /// Without a URL and a file.
    private var upload = TaskSpecification(kind: .upload, url: "")
    /// As it was written, since it may count from the moment of each file.
    private var startAt: String?

    /// None.
    package init() {}

    /// - Parameter defaults: checked keys; what is wrong with the values is reported.
    init(_ defaults: YAMLMapping, baseDirectory: String, files: NamedFiles) {
        startAt = defaults["start-at"]?.text()
        for kind in [TaskKind.download, .upload] {
            let reader = QueueEntryReader(
                kind: kind, batch: nil, defaults: defaults, baseDirectory: baseDirectory,
                moment: Moment(now: 0, utcOffset: { _ in 0 }), files: files)
            guard var task = reader.checkedDefaults(at: defaults) else { continue }
            task.startAt = nil
            task.startAtText = nil
            if kind == .download { download = task } else { upload = task }
        }
    }

    /// Fills the entries of a file.
    ///
    /// - Parameters:
    ///   - name: the file's, to print in messages.
    ///   - now: the moment that `start-at` counts from.
    ///   - utcOffset: seconds that local clocks are ahead of UTC at a moment.
    /// - Throws: ``FileError`` for the first entry that cannot be had with the defaults.
    package func fill(
        _ file: inout QueueFile, named name: String, now: Milliseconds, utcOffset: (Milliseconds) -> Int
    ) throws(FileError) {
        if self == EntryDefaults() { return }
        var (download, upload) = (download, upload)
        let moment = startAt.flatMap { PointInTime.parse($0, now: now, utcOffset: utcOffset) }
        download.startAt = moment
        upload.startAt = moment
        for index in file.entries.indices {
            let entry = file.entries[index]
            let task = entry.specification.filled(
                from: entry.specification.kind == .download ? download : upload,
                nestsDirectory: file.nestsDirectories)
            do throws(FieldError) {
                try task.check()
            } catch {
                throw FileError(
                    file: name, line: entry.line, column: entry.column, code: error.code,
                    message: "with the defaults of this directory, `\(error.field)`: \(error.message)")
            }
            file.entries[index].specification = task
        }
    }
}
