/// What a file server says about a file: all there is to tell one version from another.
struct RemoteFacts: Sendable, Equatable {
    /// Bytes.
    var size: Int64?
    /// Seconds since 1970: FTP's MDTM (RFC 3659, section 3), SFTP's mtime.
    var time: Int64?

    init(size: Int64? = nil, time: Int64? = nil) {
        self.size = size
        self.time = time
    }

    /// What earlier attempts noted down.
    init(_ version: ResourceVersion) {
        self.init(size: version.total, time: version.validator.lastModified.flatMap(HTTPDate.parse))
    }

    /// In the words of resume data.
    ///
    /// - Parameter url: where the file lies.
    func version(of url: String) -> ResourceVersion {
        ResourceVersion(
            validator: ResourceValidator(lastModified: time.map(HTTPDate.text)),
            origin: ResumeData.resource(of: url), total: size)
    }

    /// In HTTP's words, for destinations that are decided by an answer: file servers give none.
    var head: ResponseHead {
        let lines = [
            size.map { "Content-Length: \($0)\n" }, time.map { "Last-Modified: \(HTTPDate.text($0))\n" },
        ]
        return ResponseHead(status: 200, version: "", lines: lines.flatMap { Array(($0 ?? "").utf8) })
    }

    /// What is compared before a download goes on. Servers tell times in seconds, and a file may be written twice in
    /// one: where the time is known, a little is enough to see that.
    private var overlap: Overlap { time == nil ? Overlap() : .brief }

    /// Where a download goes on that has `have` bytes of the version that these facts are of: what lies from there to
    /// `have` is fetched once more and compared.
    ///
    /// - Parameter start: where ``overlap`` begins; 0 where it would tell nothing.
    /// - Returns: `nil` where nothing tells that what comes is of that version.
    func offset(have: Int64, start: (Overlap) throws(TransferError) -> Int64) throws(TransferError) -> Int64? {
        guard have > 0 else { return 0 }
        // Without a size nothing tells where the file ends, or that it is the same.
        guard let size, have < size else { return nil }
        let overlap = overlap
        let offset = try start(overlap)
        if offset > 0 { return offset }
        guard time != nil else { return nil }
        return have <= overlap.width ? 0 : have
    }

    /// Whether a file of which the server now says `other` may be the one of which it said this.
    ///
    /// - Parameter isCompared: bytes are compared besides, so that a time that is not told contradicts nothing.
    /// - Returns: why not; `nil` where it may.
    func difference(to other: RemoteFacts, isCompared: Bool) -> String? {
        guard let size, let theirs = other.size, size == theirs else {
            return "the file's size on the server changed, or is not told any more"
        }
        switch (time, other.time) {
        case (let own?, let theirs?): return own == theirs ? nil : "the file's time on the server changed"
        default: return isCompared ? nil : "the server does not tell the file's time any more"
        }
    }
}
