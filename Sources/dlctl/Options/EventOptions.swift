import ArgumentParser
import TaskModel

/// The options that select events.
struct EventOptions: ParsableArguments {
    @Option(
        name: .customLong("on"), parsing: .singleValue,
        help: ArgumentHelp(
            """
            Show these types of events, separated by commas: added, started, progress, updated, paused, resumed, \
            waiting, completed, failed, cancelled, retried, removed, batch-finished.
            """, valueName: "type,…"))
    var types: [EventTypes] = []

    @Option(help: ArgumentHelp("Show the events of this batch.", valueName: "name"), completion: .batches)
    var batch: String?

    @Option(help: ArgumentHelp("Show the events of this user's tasks.", valueName: "name|uid"))
    var owner: String?

    @Option(
        name: .customLong("state"), parsing: .singleValue,
        help: "Show the events after which a task is in this state; may be repeated.")
    var states: [TaskState] = []

    @Option(help: ArgumentHelp("Show the events of downloads or uploads only.", valueName: "download|upload"))
    var kind: TaskKind?

    init() {}

    func validate() throws {
        if batch?.isEmpty == true { throw ValidationError("--batch: is empty; give the name of a batch.") }
        if let fault = types.lazy.compactMap(\.fault).first {
            let nearest = NearestWord.to(fault, among: EventTypes.all.map(\.rawValue))
            throw ValidationError(
                "--on: \"\(fault)\" is not a type of event" + (nearest.map { "; did you mean \($0)?" } ?? "."))
        }
    }

    var wantsProgress: Bool { types.contains { $0.types.contains(.progress) } }

    func filter(ids: [TaskID]) throws(Failure) -> EventFilter {
        EventFilter(
            types: types.isEmpty ? nil : Set(types.flatMap(\.types)), ids: ids.isEmpty ? nil : Set(ids), batch: batch,
            owner: try owner.map { text throws(Failure) in try UserArgument.uid(text, option: "--owner") },
            states: states.isEmpty ? nil : Set(states), kind: kind)
    }
}

/// Types of events, separated by commas.
struct EventTypes: ExpressibleByArgument {
    /// The types that can be asked for. A gap is always shown.
    static let all = TaskEvent.Kind.allCases.filter { $0 != .gap }

    let types: [TaskEvent.Kind]
    /// The first word that is not a type.
    let fault: String?

    init(argument: String) {
        let words = argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        types = words.compactMap { word in Self.all.first { $0.rawValue == word } }
        fault = words.first { word in !Self.all.contains { $0.rawValue == word } }
    }
}
