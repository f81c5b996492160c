/// Attempts of a request whose bytes were not those that their digest wants, and what they showed.
struct Mismatches: Sendable, Equatable, Codable {
    private(set) var count = 0
    /// What a server last stated of the file.
    private(set) var stated: StatedDigest?
    /// The sources that brought what was wrong all by themselves, as ``ResumeData/resource(of:)`` has them: this is kept,
    /// and URLs hold secrets.
    private(set) var wrong: Set<String> = []

    var isEmpty: Bool { count == 0 }

    /// - Parameter source: the one that brought all the bytes, where it was alone.
    mutating func add(of source: String?, stated: StatedDigest?) {
        // The first time may have been an accident on the way.
        if count > 0, let source { wrong.insert(ResumeData.resource(of: source)) }
        count += 1
        self.stated = stated
    }
}
