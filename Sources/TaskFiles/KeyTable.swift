import TaskModel

/// The keys that may stand in one place of a file.
struct KeyTable: Sendable {
    let known: [String]
    /// Keys of the contract that nothing carries out: refused by name, since to pass over one would be to
    /// promise it.
    let notCarriedOut: [String]
    /// Keys that belong elsewhere, with the place.
    let elsewhere: [String: String]

    init(_ known: [String], notCarriedOut: [String] = [], elsewhere: [String: String] = [:]) {
        self.known = known
        self.notCarriedOut = notCarriedOut
        self.elsewhere = elsewhere
    }

    /// Why `key`, which is not among the known, cannot stand here.
    func refusal(of key: String) -> String {
        if notCarriedOut.contains(key) { return "`\(key)` is not carried out by this version yet; take it out" }
        if let place = elsewhere[key] { return "`\(key)` \(place)" }
        guard let nearest = NearestWord.to(key, among: known + notCarriedOut) else {
            return "`\(key)` is not a key here; the keys are \(known.joined(separator: ", "))"
        }
        return "`\(key)` is not a key here; did you mean `\(nearest)`?"
    }
}
