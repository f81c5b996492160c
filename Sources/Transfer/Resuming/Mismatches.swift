/// A record of a request's attempts whose bytes did not match the expected digest.
struct Mismatches: Sendable, Equatable, Codable {
    private(set) var count = 0
    /// The digest that a server sent most recently for the file.
    private(set) var stated: StatedDigest?
    /// The sources that supplied wrong content on their own, as ``ResumeData/resource(of:)``. The values are stored
    /// persistently, and URLs contain secrets.
    private(set) var wrong: Set<String> = []

    var isEmpty: Bool { count == 0 }

    /// Records a mismatch.
    ///
    /// - Parameter source: The source that supplied all bytes; `nil` if there were several.
    mutating func add(of source: String?, stated: StatedDigest?) {
        // The first mismatch may be a transmission error.
        if count > 0, let source { wrong.insert(ResumeData.resource(of: source)) }
        count += 1
        self.stated = stated
    }
}
