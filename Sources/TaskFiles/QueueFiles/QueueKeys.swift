import TaskModel

/// The keys of a queue file: the long names of the options of `dlctl add` and `dlctl upload`.
enum QueueKeys {
    static let top = KeyTable(["batch", "defaults", "downloads", "uploads"])
    static let download = table(ofDownload + ofBoth, elsewhere: ofUpload, "applies to uploads only")
    static let upload = table(ofUpload + ofBoth, elsewhere: ofDownload, "applies to downloads only")
    static let defaults = table(
        (ofUpload + ofDownload + ofBoth).filter { !ofOneEntry.contains($0) }, elsewhere: ofOneEntry,
        "applies to a single entry and cannot be a default")

    private static let ofDownload = keys(of: TaskField.all.filter { $0.kinds.only == .download })
    private static let ofUpload = keys(of: TaskField.all.filter { $0.kinds.only == .upload })
    private static let ofBoth = keys(of: TaskField.all.filter { $0.kinds.only == nil })
    private static let ofOneEntry = keys(of: TaskField.all.filter { $0.key?.isOfOneEntry == true })

    private static let fields: [String: TaskField] = Dictionary(
        uniqueKeysWithValues: TaskField.all.flatMap { field in keys(of: [field]).map { ($0, field) } })

    private static func keys(of fields: [TaskField]) -> [String] {
        fields.flatMap { field in field.key.map { [field.word, $0.alias].compactMap(\.self) } ?? [] }
    }

    private static func table(_ known: [String], elsewhere: [String], _ place: String) -> KeyTable {
        var places = Dictionary(uniqueKeysWithValues: elsewhere.map { ($0, place) })
        places["batch"] = "belongs at the top level of the file, where it applies to all entries"
        return KeyTable(known, elsewhere: places)
    }

    /// Returns the field with this key.
    static func field(_ key: String) -> TaskField? { fields[key] }

    /// Returns the key in a queue file for a field of ``TaskSpecification``.
    static func key(ofField name: String) -> String {
        guard let field = TaskField.named(name.prefix { $0 != "[" }), field.key?.alias == nil else { return name }
        return field.word
    }
}
