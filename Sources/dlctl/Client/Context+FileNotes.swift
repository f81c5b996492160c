import Glibc
import TaskFiles

extension FileNote {
    /// Reads `NAME:LINE:COLUMN: message` of the daemon.
    ///
    /// - Parameter file: the file that has this name there.
    fileprivate init?(_ text: String, of name: String, in file: String) {
        let parts = text.split(separator: ":", maxSplits: 3)
        guard parts.count == 4, parts[0] == name, let line = Int(parts[1]), let column = Int(parts[2]) else {
            return nil
        }
        self.init(file: file, line: line, column: column, message: String(parts[3].drop { $0 == " " }))
    }
}

extension Context {
    private struct Warning: Encodable {
        struct Detail: Encodable {
            var message: String
            var file: String?
            var line: Int?
            var column: Int?
        }
        var warning: Detail
    }

    /// Reports on standard error what was ignored in a file: with `--json`, one object per line.
    func report(_ notes: [FileNote]) {
        if isQuiet { return }
        let errors = Output(STDERR_FILENO)
        for note in notes {
            if json {
                errors.json(
                    Warning(
                        warning: .init(message: note.message, file: note.file, line: note.line, column: note.column)))
            } else {
                errors.line(Escape.visible(LongURL.shortened(in: "\(note)")))
            }
        }
        errors.flush()
    }

    /// Reports on standard error what of new tasks is passed over, in the same way.
    ///
    /// - Parameter file: the file of cookies, which the daemon calls `cookies`.
    func report(warnings: [String], cookies file: String?) {
        if isQuiet { return }
        let errors = Output(STDERR_FILENO)
        for message in warnings {
            if let file, let note = FileNote(message, of: "cookies", in: TaskFileReader.shown(file)) {
                report([note])
            } else if json {
                errors.json(Warning(warning: .init(message: message)))
            } else {
                errors.line("warning: " + Escape.visible(LongURL.shortened(in: message)))
            }
        }
        errors.flush()
    }
}
