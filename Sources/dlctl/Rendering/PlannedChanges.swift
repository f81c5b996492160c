import ControlProtocol
import TaskModel

/// The changes that a dry run of a queue file found, one line each: `+` added, `~` updated, `-` pruned.
enum PlannedChanges {
    static func lines(_ result: QueueCommitResult) -> [String] {
        guard let changes = result.changes else { return [] }
        let lines = changes.map { Escape.visible(line($0)) }
        let others = result.added + result.updated + result.pruned - changes.count
        return lines + (others > 0 ? ["… and \(others) more"] : [])
    }

    private static func line(_ change: QueueCommitResult.Change) -> String {
        let id = change.id.map { "\($0)  " } ?? ""
        let name = change.output.map { " as \($0)" } ?? ""
        let place = "\(change.kind == .upload ? "↑ " : "")\(LongURL.shortened(change.url))\(name)"
        return switch change.action {
        case .add: "+ \(place)"
        case .prune: "- \(id)\(place)"
        case .update: "~ \(id)\(place): \(change.fields.map(words).joined(separator: ", "))"
        }
    }

    private static func words(_ difference: FieldDifference) -> String {
        if difference.from == nil, difference.to == nil { return "\(difference.field) changed" }
        func shown(_ text: String?) -> String { text.map { value($0, of: difference.field) } ?? "none" }
        return "\(difference.field) \(shown(difference.from)) → \(shown(difference.to))"
    }

    private static func value(_ text: String, of field: String) -> String {
        guard let number = Int64(text) else { return text }
        return switch field {
        case "limit": Describe.rate(number)
        case "max-size": ByteSize.describe(number)
        case "start-at": Clock.local(number)
        default: text
        }
    }
}
