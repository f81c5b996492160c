import Glibc

extension ResumeData {
    /// Whether the resume data are self-sufficient. They are if the request had a ``DownloadDestination``;
    /// ``SessionManager/download(resumingWith:request:to:modifier:)`` then needs nothing else.
    public var isSelfSufficient: Bool { record != nil }

    /// The request without its authentication data; `nil` if the resume data are not self-sufficient.
    public var request: TransferRequest? { record?.request.request }

    /// The path of the part file; `nil` if the resume data are not self-sufficient.
    public var partPath: String? {
        record.map { $0.decision.directory + ($0.decision.directory == "/" ? "" : "/") + $0.decision.partName }
    }

    /// The path of the destination file; `nil` if the resume data are not self-sufficient.
    public var path: String? { record?.decision.path }

    /// Removes the part file, for resume data that will not be used.
    ///
    /// A different file that has the part's name by now is kept. The part of a ``DownloadTarget`` must be removed by
    /// the target's owner.
    ///
    /// - Returns: Whether the part file existed.
    /// - Throws: An error if the part file exists and cannot be removed.
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
