import Glibc

extension ResumeData {
    /// Whether they suffice by themselves: they come from a request that was given a ``DownloadDestination``, and
    /// ``SessionManager/download(resumingWith:request:to:)`` needs nothing else.
    public var isSelfSufficient: Bool { record != nil }

    /// What was asked for, without what proves who asks; `nil` where they do not suffice by themselves.
    public var request: TransferRequest? { record?.request.request }

    /// Where the part lies; `nil` where they do not suffice by themselves.
    public var partPath: String? {
        record.map { $0.decision.directory + ($0.decision.directory == "/" ? "" : "/") + $0.decision.partName }
    }

    /// Where the file was to go; `nil` where they do not suffice by themselves.
    public var path: String? { record?.decision.path }

    /// Removes the part, so that nothing is left of the download: for resume data that nobody will use.
    ///
    /// Whatever else lies under the part's name by now stays. Where the part belongs to a ``DownloadTarget`` it is for
    /// the target's owner to remove.
    ///
    /// - Returns: whether there was a part of theirs.
    /// - Throws: where it is there and cannot be removed.
    @discardableResult
    public func discard() throws(TransferError) -> Bool {
        guard let decision = record?.decision else { return false }
        let directory: Directory
        do {
            directory = try Directory.open(root: decision.directory)
        } catch {
            guard error.systemError == ENOENT || error.systemError == ENOTDIR else { throw error }
            return false
        }
        guard PartFile.isPart(decision.partName, in: directory, generation: generation) else { return false }
        return try directory.removePart(decision.partName)
    }
}
