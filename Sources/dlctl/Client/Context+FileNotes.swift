import Glibc
import TaskFiles

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
                errors.line(Escape.visible("\(note)"))
            }
        }
        errors.flush()
    }

    /// Reports on standard error what of new tasks is passed over, in the same way.
    func report(warnings: [String]) {
        if isQuiet { return }
        let errors = Output(STDERR_FILENO)
        for message in warnings {
            if json {
                errors.json(Warning(warning: .init(message: message)))
            } else {
                errors.line("warning: " + Escape.visible(message))
            }
        }
        errors.flush()
    }
}
