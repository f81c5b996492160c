import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// What a command ends with when it does not end well: one line for a person, a word for a program.
struct Failure: Error, Equatable {
    var status: ExitStatus
    /// One of the stable words of a task's `error`, or `no-daemon`.
    var code: String
    var message: String
    /// The option or argument at fault, as it is typed.
    var field: String?
    /// Stands without the program's name, as messages that begin with a file's name do.
    var bare = false

    init(_ status: ExitStatus, code: ErrorCode = .invalid, field: String? = nil, _ message: String) {
        self.status = status
        self.code = code.rawValue
        self.field = field
        self.message = message
    }

    /// A wrong use of the command.
    static func usage(_ message: String, field: String? = nil) -> Failure {
        Failure(.usage, field: field, message)
    }

    init(_ error: FieldError, names: FieldNames) {
        let (field, message) = names.translate(field: error.field, message: error.message)
        self.init(.usage, code: error.code, field: field, message)
    }

    /// - Parameter names: how the fields of this call stood on the command line.
    init(_ error: ClientError, names: FieldNames = FieldNames()) {
        switch error {
        case .noDaemon:
            self.init(.noDaemon, "\(error); start it with `dld`, or `systemctl start dld`")
            code = "no-daemon"
        case .connectionLost:
            self.init(.noDaemon, "\(error); see `dlctl status` and the daemon's log")
            code = "no-daemon"
        case .notPermitted:
            self.init(
                .notPermitted, code: .permissionDenied,
                "\(error); join the group that owns it, or name another socket with --socket")
        case .unusablePath: self.init(.usage, field: "--socket", "--socket: \(error)")
        case .timedOut: self.init(.timedOut, code: .timeout, "\(error); is it stopped, or very busy?")
        case .callTooLong: self.init(.usage, code: .tooLarge, "\(error)")
        case .malformedAnswer: self.init(.failed, code: .internal, "\(error)")
        case .rpc(let answer): self.init(answer, names: names)
        }
    }

    private init(_ answer: RPCError, names: FieldNames) {
        let code = answer.data?.code ?? .internal
        guard answer.code == RPCError.Number.invalidParameters, let field = answer.data?.field else {
            let status = code == .cannotStart ? .noDaemon : Self.status(of: answer.code)
            self.init(status, code: code, field: answer.data?.field, answer.message)
            return
        }
        let plain =
            answer.message.hasPrefix(field + ": ") ? answer.message.dropFirst(field.count + 2) : "\(answer.message)"
        let (option, message) = names.translate(field: field, message: String(plain))
        self.init(code == .permissionDenied ? .notPermitted : .usage, code: code, field: option, message)
    }

    /// What an error number of the protocol means to the shell.
    static func status(of number: Int) -> ExitStatus {
        switch number {
        case RPCError.Number.parse, RPCError.Number.invalidRequest, RPCError.Number.methodNotFound,
            RPCError.Number.invalidParameters:
            .usage
        case RPCError.Number.notPermitted: .notPermitted
        default: .failed
        }
    }

    /// What values are to be of which the argument parser says only that they are not.
    private static let expectations = [
        ("--connections", ConnectionCount.expectation), ("--limit <rate>", "bytes a second, like 500K, 2M or 1.5G"),
        ("--max-size", "a size, like 500K, 2M or 1.5G"), ("--timeout", "seconds"),
    ]

    /// What the argument parser has to say, in one line.
    ///
    /// - Parameters:
    ///   - message: its first part.
    ///   - full: with usage; its last line says whose help to read.
    init(parsing message: String, full: String) {
        let hint = full.split(separator: "\n").last { $0.contains("See '") }?
            .split(separator: "'").dropFirst().first.map { "; see '\($0)'" }
        var line = message.split(separator: "\n").map { $0.drop { $0 == " " } }.joined(separator: " ")
        for (option, expectation) in Self.expectations where line.contains("is invalid for '\(option)") {
            line += ": it is to be \(expectation)"
        }
        self.init(.usage, (line.hasSuffix(".") ? String(line.dropLast()) : line) + (hint ?? ""))
    }

    /// The parser takes a misspelt command for an argument too many; this is the better word for it.
    ///
    /// - Returns: `nil` where the first argument that is no option is a command.
    init?(unknownCommandIn arguments: [String], among commands: [String]) {
        guard var index = ArgumentRuns.commandIndex(arguments) else { return nil }
        if arguments[index] == "help", index + 1 < arguments.count { index += 1 }
        let word = arguments[index]
        guard !commands.contains(word), !word.hasPrefix("-") else { return nil }
        let nearest = NearestWord.to(word, among: commands).map { "did you mean '\($0)'?" }
        self.init(.usage, "there is no command '\(word)'; \(nearest ?? "see 'dlctl --help'")")
    }

    private struct Shown: Encodable {
        struct Detail: Encodable {
            var code: String
            var message: String
            var field: String?

            private enum CodingKeys: String, CodingKey { case code, message, field }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(code, forKey: .code)
                try container.encode(message, forKey: .message)
                try container.encode(field, forKey: .field)
            }
        }
        var error: Detail
    }

    /// Writes to standard error.
    func report(json: Bool) {
        let errors = Output(STDERR_FILENO)
        if json {
            errors.json(Shown(error: .init(code: code, message: message, field: field)))
        } else {
            errors.line((bare ? "" : "dlctl: ") + Escape.visible(message))
        }
        errors.flush()
    }
}

extension Failure {
    static func unknown(_ id: TaskID) -> Failure {
        Failure(.failed, field: "id", "no task has the id \(id); see `dlctl list`")
    }

    static let waitedTooLong = Failure(
        .timedOut, code: .timeout, "the time is over and not every task has ended; they go on without being waited for")
    static let daemonAway = Failure(
        .noDaemon, code: .connect, "the daemon went away; waiting for it to come back")
}
