/// The declaration of one field of a task: its names, its form, and the rules by which the daemon and its clients treat
/// it.
///
/// ``all`` declares the fields. The JSON of tasks and secrets, the keys of queue files, the options of `dlctl`, the
/// names in error messages, the filling of entries, and the refusals derive from it.
package final class TaskField: Sendable {
    /// The name in JSON.
    package let name: String
    /// The name for people: the long name of the option of `dlctl`, and the key in queue files.
    package let word: String
    /// The tasks that have the field.
    package let kinds: Kinds
    /// The URL schemes for which the field has a meaning.
    package let schemes: Schemes
    let secrecy: Secrecy
    let filling: Filling
    /// The key in queue files, named ``word``; `nil` for none.
    package let key: Key?
    /// The option of `dlctl add` or `dlctl upload`, named ``word``; `nil` for none.
    package let option: Option?
    /// The option of `dlctl set`, named ``word``; `nil` for a field that cannot be changed.
    package let change: Option?
    /// The option of aria2's input files; `nil` for none.
    package let aria2: Aria2?
    let check: FieldCheck?
    /// The way in which people write the value.
    package let syntax: FieldSyntax
    let operations: FieldOperations
    /// The type of the value in JSON.
    package let json: FieldJSON
    /// Whether the JSON is an object, whose errors name a field within it.
    let isObject: Bool
    let jsonKey: AnyKey
    /// The position in ``all``.
    let index: Int

    /// Whether the JSON of a task always has the field.
    package var isRequired: Bool { name == "url" }

    init(
        _ name: String, _ form: FieldForm, word: String? = nil, kinds: Kinds = .all, schemes: Schemes = .all,
        secrecy: Secrecy = .none, filling: Filling = .ifAbsent, key: Key? = nil, option: Option? = nil,
        change: Option? = nil, aria2: Aria2? = nil, check: FieldCheck? = nil
    ) {
        self.name = name
        jsonKey = AnyKey(stringValue: name)
        syntax = form.syntax
        operations = form.operations
        json = form.json
        isObject = form.isObject
        self.word = word ?? name
        self.kinds = kinds
        self.schemes = schemes
        self.secrecy = secrecy
        self.filling = filling
        self.key = key
        self.option = option
        self.change = change
        self.aria2 = aria2
        self.check = check
        index = 0
    }

    private init(_ field: TaskField, at index: Int) {
        name = field.name
        jsonKey = field.jsonKey
        syntax = field.syntax
        operations = field.operations
        json = field.json
        isObject = field.isObject
        word = field.word
        kinds = field.kinds
        schemes = field.schemes
        secrecy = field.secrecy
        filling = field.filling
        key = field.key
        option = field.option
        change = field.change
        aria2 = field.aria2
        check = field.check
        self.index = index
    }

    /// The tasks that have a field.
    package struct Kinds: Sendable {
        /// The only kind that has the field; `nil` for both.
        package let only: TaskKind?
        /// The message for a task of the other kind; `nil` where it ignores the field.
        let refusal: String?

        static let all = Kinds(only: nil, refusal: nil)
        static let downloads = downloads(refusal: "applies to downloads only")
        static let uploads = uploads(refusal: "applies to uploads only")

        static func downloads(refusal: String?) -> Kinds { Kinds(only: .download, refusal: refusal) }
        static func uploads(refusal: String) -> Kinds { Kinds(only: .upload, refusal: refusal) }

        /// Returns whether tasks of this kind have the field.
        package func contains(_ kind: TaskKind) -> Bool { only == nil || only == kind }
    }

    package enum Schemes: Sendable {
        case all
        /// At least one URL of the task uses HTTP.
        case http
        /// The URL itself uses HTTP.
        case httpTarget
    }

    /// The part of the value that must not be shown.
    enum Secrecy: Sendable {
        case none
        /// The secrets in each URL of the value.
        case urls
        /// The whole value.
        case value
    }

    /// The rule by which an entry of a file takes the value from the options of the whole file.
    enum Filling: Sendable, Equatable {
        case never
        /// The entry takes the value if it has none.
        case ifAbsent
        /// The entry takes the value if it has none of the fields of this group.
        case together(Group)
        /// The rule of ``ifAbsent``; where both have a directory, that of the entry may lie beneath the other.
        case nested

        enum Group: Sendable, CaseIterable { case login, start, digest }
    }

    package struct Key: Sendable {
        /// A second name of the key.
        package var alias: String?
        /// Whether the key belongs to one entry and cannot be a default of all.
        package var isOfOneEntry = false

        static let ofAll = Key()
        static let ofOneEntry = Key(isOfOneEntry: true)
    }

    package struct Option: Sendable {
        package var help: String
        /// The name of the value in the help; `nil` for the name of the option.
        package var value: String?
        package var short: Character?
        /// The name of the field after whose option the help lists this one; `nil` for the order of ``TaskField/all``.
        package var follows: String?
        /// The text that resets a field which is changed; `nil` for a field that cannot be reset.
        package var takesBack: String?

        init(
            _ help: String, value: String? = nil, short: Character? = nil, follows: String? = nil,
            takesBack: String? = "none"
        ) {
            self.help = help
            self.value = value
            self.short = short
            self.follows = follows
            self.takesBack = takesBack
        }
    }

    package enum Aria2: Sendable {
        /// An option of this name, read by the syntax of the field.
        case option(String)
        /// Options from which the entry composes the value by rules of its own.
        case composed([String])

        package var names: [String] {
            switch self {
            case .option(let name): [name]
            case .composed(let names): names
            }
        }
    }

    /// Restores the default in a task.
    package func reset(in values: inout UnpackedTask) { operations.reset(&values) }

    // MARK: - Look-up

    /// Returns the list with each field at its index.
    static func numbered(_ fields: [TaskField]) -> [TaskField] {
        fields.enumerated().map { TaskField($1, at: $0) }
    }

    private static let indices = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0.index) })

    /// Returns the field with this name in JSON, also one that is not a field of a task's JSON.
    package static func named(_ name: some StringProtocol) -> TaskField? {
        indices[String(name)].map { all[$0] }
    }

    /// The changeable fields in the order of the help of `dlctl set`.
    package static let changeableInHelp =
        changeHelpOrder.compactMap { named($0) }
        + changeable.filter { !changeHelpOrder.contains($0.name) }
    /// The fields of a task's JSON.
    package static let ofJSON = all.filter { !isOfDaemon($0) }

    private static func isOfDaemon(_ field: TaskField) -> Bool { field.index >= all.count - ofDaemon.count }

    /// Returns the field of a task's JSON with this name.
    static func ofJSON(named name: String) -> TaskField? {
        named(name).flatMap { isOfDaemon($0) ? nil : $0 }
    }

    /// The fields that may be changed after the task was added, in the order in which messages name them.
    package static let changeable =
        changeOrder.compactMap { named($0) }
        + all.filter { $0.change != nil && !changeOrder.contains($0.name) }
}
