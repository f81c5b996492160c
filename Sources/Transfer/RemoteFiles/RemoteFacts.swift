/// The size and modification time of a file on a file server. Nothing else distinguishes versions of the file.
struct RemoteFacts: Sendable, Equatable {
    /// The size in bytes.
    var size: Int64?
    /// The modification time in seconds since 1970: MDTM of FTP (RFC 3659, section 3), mtime of SFTP.
    var time: Int64?

    init(size: Int64? = nil, time: Int64? = nil) {
        self.size = size
        self.time = time
    }

    /// Creates the facts from a version recorded by an earlier attempt.
    init(_ version: ResourceVersion) {
        self.init(size: version.total, time: version.validator.lastModified.flatMap(HTTPDate.parse))
    }

    /// Returns the facts as a version for resume data.
    ///
    /// - Parameter url: The URL of the file.
    func version(of url: String) -> ResourceVersion {
        ResourceVersion(
            validator: ResourceValidator(lastModified: time.map(HTTPDate.text)),
            origin: ResumeData.resource(of: url), total: size)
    }

    /// The facts as an HTTP response head, for code that chooses a destination from a response. File servers send none.
    var head: ResponseHead {
        let lines = [
            size.map { "Content-Length: \($0)\n" }, time.map { "Last-Modified: \(HTTPDate.text($0))\n" },
        ]
        return ResponseHead(status: 200, version: "", lines: lines.flatMap { Array(($0 ?? "").utf8) })
    }

    /// The overlap to compare before a download resumes. Servers report times in whole seconds, and a file may be
    /// written twice within one. A short overlap detects this if the time is known.
    private var overlap: Overlap { time == nil ? Overlap() : .brief }

    /// Returns the offset at which a download resumes that has `have` bytes of the version with these facts. The bytes
    /// from that offset to `have` are fetched again and compared.
    ///
    /// - Parameter start: Returns the start of an overlap; 0 if comparing the overlap would prove nothing.
    /// - Returns: `nil` if nothing can show that the new bytes are of the same version.
    func offset(have: Int64, start: (Overlap) throws(TransferError) -> Int64) throws(TransferError) -> Int64? {
        guard have > 0 else { return 0 }
        // Without a size, neither the end of the file nor its identity is known.
        guard let size, have < size else { return nil }
        let overlap = overlap
        let offset = try start(overlap)
        if offset > 0 { return offset }
        guard time != nil else { return nil }
        return have <= overlap.width ? 0 : have
    }

    /// Compares these recorded facts with `other`, the server's current facts.
    ///
    /// - Parameter isCompared: Whether bytes are compared as well. If so, a missing time is not a difference.
    /// - Returns: The reason why the files differ; `nil` if they may be the same.
    func difference(to other: RemoteFacts, isCompared: Bool) -> String? {
        guard let size, let theirs = other.size, size == theirs else {
            return "the file's size on the server changed, or is no longer reported"
        }
        switch (time, other.time) {
        case (let own?, let theirs?): return own == theirs ? nil : "the file's time on the server changed"
        default: return isCompared ? nil : "the server no longer reports the file's time"
        }
    }
}
