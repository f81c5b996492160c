import ArgumentParser

struct Queue: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Applies queue files, and lists batches.",
        subcommands: [QueueApply.self, QueueList.self])

    @OptionGroup var global: GlobalOptions
}
