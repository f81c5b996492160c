import ArgumentParser
import TaskFiles
import TaskModel

/// Options of a command that ``TaskField/all`` declares. The help lists them in the order of ``FieldGroup/fields``.
///
/// The argument parser finds the options of a type by reflection, so ``customMirror`` shows it one property wrapper for
/// each field.
struct FieldOptions<Group: FieldGroup>: ParsableArguments, CustomReflectable {
    private var arguments: [(field: TaskField, argument: FieldArgument)]

    init() {
        arguments = Group.fields.map { field in
            (field, Group.isOfChanges ? FieldArgument(changing: field) : FieldArgument(of: field))
        }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        self.init()
        for index in arguments.indices {
            let key = AnyKey(stringValue: arguments[index].field.name)
            arguments[index].argument = try arguments[index].argument.decoded(from: container, key)
        }
    }

    var customMirror: Mirror {
        Mirror(self, children: arguments.map { (label: $0.field.name, value: $0.argument.wrapper) })
    }

    /// The fields whose options the command line has.
    var given: [TaskField] { arguments.filter { $0.argument.isGiven }.map(\.field) }

    /// Returns whether the command line has the option of a field.
    func isGiven(_ name: String) -> Bool { self[name]?.isGiven ?? false }

    /// Returns the text of a field's option as typed.
    func text(_ name: String) -> String? { self[name]?.text }

    /// Returns the texts of a field's option that may be repeated.
    func texts(_ name: String) -> [String] { self[name]?.texts ?? [] }

    private subscript(name: String) -> FieldArgument? { arguments.first { $0.field.name == name }?.argument }
}

extension FieldOptions {
    /// Reads the files that the options name, and stores the values of the options.
    func resolve(_ input: inout InputText, into values: inout UnpackedTask) throws(Failure) {
        for (field, argument) in arguments where argument.isGiven {
            try argument.store(field, in: &values, &input)
        }
    }

    /// Reads the files that the options name.
    ///
    /// - Returns: the changes that the options ask for.
    func changes(_ input: inout InputText) throws(Failure) -> TaskChanges {
        var changes = TaskChanges()
        for (field, argument) in arguments where argument.isGiven {
            if argument.takesBack(field) {
                changes.takeBack(field)
            } else {
                var values = UnpackedTask(TaskSpecification(url: ""))
                try argument.store(field, in: &values, &input)
                changes.set(field, to: &values)
            }
        }
        return changes
    }

    /// The fields that get a new value, and are not reset.
    var assigned: [TaskField] {
        arguments.filter { $0.argument.isGiven && !$0.argument.takesBack($0.field) }.map(\.field)
    }
}

/// The fields of a group of options.
protocol FieldGroup {
    static var fields: [TaskField] { get }
    /// Whether the options change a task that is there.
    static var isOfChanges: Bool { get }
}

extension FieldGroup {
    static var isOfChanges: Bool { false }
}

/// The fields of downloads alone.
enum DownloadFields: FieldGroup {
    static let fields = TaskField.options(of: .download)
}

/// The fields of uploads alone.
enum UploadFields: FieldGroup {
    static let fields = TaskField.options(of: .upload)
}

/// The fields that downloads and uploads have.
enum SharedFields: FieldGroup {
    static let fields = TaskField.options(of: nil)
}

/// The fields that `dlctl set` changes.
enum ChangeFields: FieldGroup {
    /// `--batch` is an option of the selection.
    static let fields = TaskField.changeableInHelp.filter { $0.name != "batch" }
    static let isOfChanges = true
}

extension TaskField {
    /// Returns the fields with an option that only tasks of `kind` have, or both kinds for `nil`, in the order of the
    /// help.
    fileprivate static func options(of kind: TaskKind?) -> [TaskField] {
        let fields = all.filter { $0.option != nil && $0.kinds.only == kind }
        var listed = fields.filter { $0.option?.follows == nil }
        for field in fields {
            guard let leader = field.option?.follows else { continue }
            let index = listed.firstIndex { $0.name == leader }.map { $0 + 1 } ?? listed.endIndex
            listed.insert(field, at: index)
        }
        return listed
    }
}
