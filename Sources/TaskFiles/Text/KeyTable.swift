import TaskModel

/// The keys that are allowed in one mapping of a file.
struct KeyTable: Sendable {
    let known: [String]
    /// Documented keys that are not supported yet. They are rejected by name, because ignoring one would imply that it
    /// takes effect.
    let notCarriedOut: [String]
    /// Keys that belong to a different place, with a text that names the place.
    let elsewhere: [String: String]

    init(_ known: [String], notCarriedOut: [String] = [], elsewhere: [String: String] = [:]) {
        self.known = known
        self.notCarriedOut = notCarriedOut
        self.elsewhere = elsewhere
    }

    /// Returns the error message for `key`, which is not one of the known keys.
    func refusal(of key: String) -> String {
        if notCarriedOut.contains(key) { return "\"\(key)\" is not supported by this version; remove it" }
        if let place = elsewhere[key] { return "\"\(key)\" \(place)" }
        guard let nearest = NearestWord.to(key, among: known + notCarriedOut) else {
            return "\"\(key)\" is not a key here; the keys are \(known.joined(separator: ", "))"
        }
        return "\"\(key)\" is not a key here; did you mean \"\(nearest)\"?"
    }
}
