import ArgumentParser
import TaskModel

/// The options that `add` and `upload` share.
struct TransferOptions: ParsableArguments {
    @OptionGroup var fields: FieldOptions<SharedFields>

    @Flag(help: "Wait until every task has ended, with a progress bar on a terminal.")
    var wait = false

    @Option(
        name: .customLong("exec"),
        help: ArgumentHelp(
            "With --wait: run this command for each task that completes, as dlctl events --exec does.",
            valueName: "command"))
    var command: String?

    init() {}

    func validate() throws {
        guard let command else { return }
        if command.isEmpty { throw ValidationError("--exec: is empty; give a command.") }
        if !wait { throw ValidationError("--exec: needs --wait.") }
    }

    /// The idempotency key of the only task.
    var key: String? { fields.text("key") }

    /// Whether a wait for the tasks begins with their states: one may exist under the key, or is paused.
    var needsStates: Bool { key != nil || fields.isGiven("paused") }

    /// The file of cookies.
    var cookies: String? { fields.text("cookies") }

    /// Reads the files that the options name and validates the values that can be checked here.
    ///
    /// - Returns: a task without a URL that contains the values of the options.
    func resolve(_ input: inout InputText) throws(Failure) -> TaskSpecification {
        var values = UnpackedTask(TaskSpecification(url: ""))
        try resolve(&input, into: &values)
        return values.packed
    }

    /// Stores the values of the options; see ``resolve(_:)``.
    func resolve(_ input: inout InputText, into values: inout UnpackedTask) throws(Failure) {
        if fields.isGiven("password"), !fields.isGiven("user") {
            throw .usage("--password-file needs --user NAME", field: "--password-file")
        }
        try fields.resolve(&input, into: &values)
    }
}
