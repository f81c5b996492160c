package import TaskModel

/// A watched directory into which files of tasks are dropped.
package struct Watch: Sendable, Equatable {
    /// The absolute path, without a trailing slash.
    package var directory: String
    package var defaults: EntryDefaults

    package init(directory: String, defaults: EntryDefaults = EntryDefaults()) {
        self.directory = directory
        self.defaults = defaults
    }
}

/// Defaults for the options that a file's entries omit. They are given outside the file with the keys of its
/// `defaults`.
package struct EntryDefaults: Sendable, Equatable {
    /// The defaults for downloads, without a URL.
    private var download = TaskSpecification(url: "")
    /// The defaults for uploads, without a URL and a file.
    private var upload = TaskSpecification(kind: .upload, url: "")
    /// The text of `start-at` as written, because it may be relative to the time of each file.
    private var startAt: String?

    /// Creates empty defaults.
    package init() {}

    /// Parses defaults.
    ///
    /// - Parameter defaults: a mapping with validated keys; faults in the values are reported.
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

    /// Applies the defaults to the entries of a file.
    ///
    /// - Parameters:
    ///   - name: the file's name to print in messages.
    ///   - now: the current time, to which `start-at` is relative.
    ///   - utcOffset: returns the offset of local time from UTC in seconds at a given time.
    /// - Throws: ``FileError`` for the first entry that is invalid with the defaults.
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
                    message: "with the defaults of this directory, \"\(error.field)\": \(error.message)")
            }
            file.entries[index].specification = task
        }
    }
}
