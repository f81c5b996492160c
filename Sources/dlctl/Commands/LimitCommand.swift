import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

/// The `limit` command. It is not called `Limit` because types of other files have a nested type of that name.
struct LimitCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Shows or sets the rate limits of all tasks together.",
        usage: "dlctl limit [--download <rate>] [--upload <rate>]",
        discussion: """
            A new limit takes effect at once and persists across restarts of the daemon. none removes the limit; \
            config returns to the configuration and its schedule. To limit a single task, use dlctl set --limit.

            EXAMPLES:
              dlctl limit                                  show the current limits
              dlctl limit --download 2M --upload 500K
              dlctl limit --download none
              dlctl limit --download config
            """)

    @Option(
        help: ArgumentHelp(
            "The limit for all downloads in bytes per second: 500K, 2M, none or config.", valueName: "rate"))
    var download: DaemonRateArgument?

    @Option(
        help: ArgumentHelp(
            "The limit for all uploads in bytes per second: 500K, 2M, none or config.", valueName: "rate"))
    var upload: DaemonRateArgument?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let limits = try context.connect().limits(.init(download: download?.rate, upload: upload?.rate))
        if context.json {
            context.output.json(limits)
        } else {
            Self.lines(limits).forEach(context.output.line)
        }
    }

    static func lines(_ limits: DaemonLimits) -> [String] {
        [
            line("download", limits.download, limits.downloadSource),
            line("upload", limits.upload, limits.uploadSource),
        ]
    }

    private static func line(_ name: String, _ rate: Int64?, _ source: String) -> String {
        let words = rate.map { Describe.rate($0) } ?? "no limit"
        let reason =
            switch source {
            case "command": "set by dlctl limit; --\(name) config returns to the configuration"
            case "schedule": "from the schedule"
            default: "from the configuration"
            }
        return DisplayWidth.pad(name, 8) + "  \(words) (\(reason))"
    }
}

/// A rate in bytes per second, `none` or 0 for no limit, or `config` for the configured limit.
struct DaemonRateArgument: ExpressibleByArgument {
    let rate: DaemonLimitsParameters.Rate

    init?(argument: String) {
        switch argument {
        case "none": rate = .unlimited
        case "config": rate = .configured
        default:
            guard let rate = RateArgument(argument: argument) else { return nil }
            self.rate = rate.bytesPerSecond.map { .limit($0) } ?? .unlimited
        }
    }
}
