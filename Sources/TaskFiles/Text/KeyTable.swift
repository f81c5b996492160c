import TaskModel

/// The keys that are allowed in one mapping of a file.
struct KeyTable: Sendable {
    let known: [String]
    /// Keys that belong to a different place, with a text that names the place.
    let elsewhere: [String: String]

    init(_ known: [String], elsewhere: [String: String] = [:]) {
        self.known = known
        self.elsewhere = elsewhere
    }

    /// Creates the table of the keys that an enumeration lists.
    init<Key: CaseIterable & RawRepresentable<String>>(_: Key.Type) {
        self.init(Key.allCases.map(\.rawValue))
    }

    /// Returns the error message for `key`, which is not one of the known keys.
    func refusal(of key: String) -> String {
        if let place = elsewhere[key] { return "\"\(key)\" \(place)" }
        guard let nearest = NearestWord.to(key, among: known) else {
            return "\"\(key)\" is not a key here; the keys are \(known.joined(separator: ", "))"
        }
        return "\"\(key)\" is not a key here; did you mean \"\(nearest)\"?"
    }
}
