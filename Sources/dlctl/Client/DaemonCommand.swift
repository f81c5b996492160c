import ArgumentParser
import ControlClient

/// A command that talks to the daemon.
protocol DaemonCommand: ParsableCommand {
    /// The options after the command's name.
    var global: GlobalOptions { get }
    /// The options before the command's name, outermost first.
    var outer: [GlobalOptions] { get }

    func perform(_ context: Context) throws
}

extension DaemonCommand {
    mutating func run() throws {
        let all = outer + [global]
        let context = Context(
            try DaemonChoice(all), json: all.contains(where: \.json), timeout: all.compactMap(\.timeout).last?.seconds,
            isQuiet: all.contains(where: \.quiet), isVerbose: all.contains(where: \.verbose))
        do {
            try perform(context)
        } catch let error as ClientError {
            throw Failure(error)
        }
        context.output.flush()
    }
}
