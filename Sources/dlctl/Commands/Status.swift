import ControlClient
import ArgumentParser
import ControlProtocol
import TaskModel

struct Status: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the daemon as a whole.",
        discussion: """
            EXAMPLES:
              dlctl status
              dlctl status --json | jq .tasks.active
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: Dlctl
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let status = try context.connect().status()
        if context.json {
            context.output.json(status)
        } else {
            Self.lines(status).forEach(context.output.line)
        }
    }

    static func lines(_ status: DaemonStatus) -> [String] {
        var facts = [
            ("up for", Describe.span(milliseconds: status.uptime)),
            ("tasks", Describe.counts(status.tasks)),
            ("rate", "\(Describe.rate(status.downloadRate)) down, \(Describe.rate(status.uploadRate)) up"),
            ("downloads", status.downloadDirectory),
            ("state", status.stateDirectory),
            ("socket", status.socket),
            ("libcurl", status.libcurl),
        ]
        if status.internalFaults > 0 {
            facts.append(
                ("faults", "\(status.internalFaults) transfers had to be kicked: please report what the log says"))
        }
        let width = facts.reduce(0) { max($0, $1.0.count) }
        return ["dld \(Escape.visible(status.version)), process \(status.pid)"]
            + facts.map { "  " + DisplayWidth.pad($0.0, width) + "  " + Escape.visible($0.1) }
    }
}
