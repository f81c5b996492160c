import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// An error that ends a command, with a one-line message for people and a code for programs.
struct Failure: Error, Equatable {
    var status: ExitStatus
    /// A stable error code: one of the codes of a task's `error`, or `usage`, `unknown-task`, `wrong-state` or
    /// `no-daemon`.
    var code: String
    var message: String
    /// The option or argument at fault, as typed on the command line.
    var field: String?
    /// Whether the message is shown without the program's name, as for messages that begin with a file name.
    var bare = false
    /// Messages about further faults, each shown on a line of its own.
    var others: [String] = []

    init(_ status: ExitStatus, code: ErrorCode = .invalid, field: String? = nil, _ message: String) {
        self.status = status
        self.code = code.rawValue
        self.field = field
        self.message = message
    }

    /// Returns a usage error.
    static func usage(_ message: String, field: String? = nil) -> Failure {
        Failure(.usage, code: .usage, field: field, message)
    }

    /// Returns the code for a rejected value. A value without a code of its own is a usage error.
    private static func word(_ code: ErrorCode) -> ErrorCode { code == .invalid ? .usage : code }

    init(_ error: FieldError, names: FieldNames) {
        let (field, message) = names.translate(field: error.field, message: error.message)
        self.init(.usage, code: Self.word(error.code), field: field, message)
    }

    /// - Parameters:
    ///   - names: the names of the call's fields on the command line.
    ///   - advice: advice for a daemon that does not answer.
    init(_ error: ClientError, names: FieldNames = FieldNames(), advice: DaemonAdvice = .here) {
        switch error {
        case .noDaemon(let paths, _) where paths.count == 1 && Self.isNoSocket(paths[0]):
            self.init(.noDaemon, "\(paths[0]) is not a socket; give the daemon's socket with --socket")
            code = "no-daemon"
        case .noDaemon(let paths, _) where paths.count > 1:
            self.init(.noDaemon, "\(error)")
            others = [advice.start(paths)]
            code = "no-daemon"
        case .noDaemon(let paths, _):
            self.init(.noDaemon, "\(error); \(advice.start(paths))")
            code = "no-daemon"
        case .connectionLost(let path):
            self.init(.noDaemon, "\(error); \(advice.log(path))")
            code = "no-daemon"
        case .notPermitted:
            self.init(
                .notPermitted, code: .permissionDenied,
                "\(error); join the group that owns it, or give another socket with --socket")
        case .unusablePath: self = .usage("--socket: \(error)", field: "--socket")
        case .timedOut:
            self.init(
                .timedOut, code: .timeout,
                "\(error): it may be very busy, or stopped (after Ctrl-Z, `fg` in its terminal continues it), and may "
                    + "yet carry the command out; `systemctl status dld` shows it (your own: with --user), and "
                    + "--timeout TIME waits longer")
        case .callTooLong: self.init(.usage, code: .tooLarge, "\(error); give fewer tasks in one command")
        case .malformedAnswer: self.init(.failed, code: .internal, "\(error)")
        case .unusableIdentifier, .busyIdentifier, .unusableState: self.init(.failed, code: .io, "\(error)")
        case .rpc(let answer): self.init(answer, names: names)
        }
    }

    /// Whether the path exists and is not a socket.
    private static func isNoSocket(_ path: String) -> Bool {
        var information = stat()
        return stat(path, &information) == 0 && information.st_mode & S_IFMT != S_IFSOCK
    }

    private init(_ answer: RPCError, names: FieldNames) {
        let code = answer.data?.code ?? .internal
        guard answer.code == RPCError.Number.invalidParameters, let field = answer.data?.field else {
            let status = code == .cannotStart ? .noDaemon : Self.status(of: answer.code)
            self.init(
                status, code: status == .usage ? Self.word(code) : code, field: answer.data?.field, answer.message)
            return
        }
        let plain =
            answer.message.hasPrefix(field + ": ") ? answer.message.dropFirst(field.count + 2) : "\(answer.message)"
        let (option, message) = names.translate(field: field, message: String(plain))
        self.init(
            code == .permissionDenied ? .notPermitted : .usage, code: Self.word(code), field: option, message)
    }

    /// Returns the exit status for an error number of the protocol.
    static func status(of number: Int) -> ExitStatus {
        switch number {
        case RPCError.Number.parse, RPCError.Number.invalidRequest, RPCError.Number.methodNotFound,
            RPCError.Number.invalidParameters:
            .usage
        case RPCError.Number.notPermitted: .notPermitted
        default: .failed
        }
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

    /// Writes the failure to standard error.
    func report(json: Bool) {
        let errors = Output(STDERR_FILENO)
        if json {
            let message = ([message] + others).joined(separator: "\n")
            errors.json(Shown(error: .init(code: code, message: message, field: field)))
        } else {
            for text in [(bare ? "" : "dlctl: ") + message] + others {
                errors.line(Escape.visible(LongURL.shortened(in: text)))
            }
        }
        errors.flush()
    }
}

extension Failure {
    static func unknown(_ id: TaskID) -> Failure {
        Failure(.failed, code: .unknownTask, field: "id", "no task has the id \(id); see \"dlctl list\"")
    }

    static let waitedTooLong = Failure(
        .timedOut, code: .timeout, "the timeout expired before all tasks ended; the tasks continue")
    static let timeIsOver = Failure(.timedOut, code: .timeout, "the time of --timeout is over")
    static let daemonAway = Failure(
        .noDaemon, code: .connect, "the connection to the daemon was lost; waiting for the daemon to start again")
}
