/// A change that a dry run of a staged batch would make.
package struct PlannedChange: Sendable, Equatable {
    package enum Action: String, Sendable {
        case add, update, prune
    }

    package var action: Action
    /// The existing task; `nil` for a task that would be added.
    package var id: TaskID?
    package var kind: String
    /// The URL, without its secrets.
    package var url: String
    package var output: String?
    /// The fields that an update changes.
    package var fields: [FieldDifference]

    package init(
        action: Action, id: TaskID?, kind: String, url: String, output: String?, fields: [FieldDifference] = []
    ) {
        self.action = action
        self.id = id
        self.kind = kind
        self.url = url
        self.output = output
        self.fields = fields
    }
}
