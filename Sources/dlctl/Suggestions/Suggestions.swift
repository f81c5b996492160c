import ControlClient
import ControlProtocol
import TaskModel

/// The words that the running daemon has for a place on the command line, for the completion of a shell.
///
/// A shell waits while the user looks at the line, so an absent or busy daemon has no words.
struct Suggestions {
    /// The maximum time for all calls in seconds.
    private static let patience = 0.04
    /// The maximum number of words.
    static let limit = 100
    /// The maximum number of characters of a description.
    private static let descriptionLength = 40

    /// A word, with a description for shells that show one.
    struct Word: Equatable {
        var text: String
        var description: String?
    }

    /// The command line, the program first.
    let words: [String]

    // MARK: Tasks, batches and hosts

    /// Returns the ids of the newest tasks to which the command applies, the newest first.
    func taskIDs() -> [Word] {
        let given = Set(words.dropLast())
        return newestTasks(states: Self.states(of: command)).reversed()
            .map { Word(text: "\($0.id)", description: Self.describe($0)) }
            .filter { !given.contains($0.text) }
    }

    /// Returns the names of batches.
    func batches() -> [Word] {
        let batches = call { client throws(ClientError) in try client.queues().batches } ?? []
        return batches.suffix(Self.limit).reversed().map { batch in
            let count = batch.tasks.values.reduce(0) { $0.addingClamped($1) }
            return Word(text: batch.batch, description: count == 1 ? "1 task" : "\(count) tasks")
        }
    }

    /// Returns the hosts of the newest tasks, as the beginnings of URLs.
    func hosts() -> [Word] {
        var seen: Set<String> = []
        return newestTasks(states: nil).reversed().compactMap { task in
            guard let key = (try? TaskAddress(parsing: task.url))?.hostKey, seen.insert(key).inserted else {
                return nil
            }
            return Word(text: key + "/")
        }
    }

    private func newestTasks(states: [TaskState]?) -> [TaskStatus] {
        let parameters = TaskListParameters(
            filter: TaskFilter(states: states), limit: Self.limit, newest: Self.limit)
        return call { client throws(ClientError) in try client.page(parameters).tasks } ?? []
    }

    private func call<Value>(_ body: (ControlClient) throws(ClientError) -> Value) -> Value? {
        let deadline = Deadline.after(seconds: Self.patience)
        guard let client = try? ControlClient(explicit: socket) else { return nil }
        client.deadline = deadline
        return try? body(client)
    }

    private static func describe(_ task: TaskStatus) -> String {
        let name = Escape.visible(Describe.name(task)).prefix(descriptionLength)
        return "\(task.state.rawValue) \(name)"
    }

    // MARK: The command line

    /// The first word that names a command.
    var command: String? {
        var isValue = false
        for word in words.dropFirst() {
            if isValue {
                isValue = false
            } else if word == "--socket" {
                isValue = true
            } else if !word.hasPrefix("-") {
                return word
            }
        }
        return nil
    }

    /// Returns the part of a word that is completed: of `--option=value` the value.
    static func value(in word: String) -> Substring {
        guard word.hasPrefix("--"), let equals = word.firstIndex(of: "=") else { return word[...] }
        return word[word.index(after: equals)...]
    }

    /// The socket that the command line names.
    var socket: String? {
        for (index, word) in words.enumerated() {
            if word.hasPrefix("--socket=") { return String(word.dropFirst("--socket=".count)) }
            if word == "--socket", index + 1 < words.count { return words[index + 1] }
        }
        return nil
    }

    /// Returns the states of the tasks that a command can change; `nil` for all.
    static func states(of command: String?) -> [TaskState]? {
        switch command {
        case "pause": [.queued, .active, .waiting]
        case "resume": [.paused, .waiting]
        case "retry": [.failed, .cancelled]
        case "cancel", "wait", "watch", "move": [.queued, .active, .waiting, .paused]
        default: nil
        }
    }
}
