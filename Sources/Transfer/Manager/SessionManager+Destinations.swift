import FoundationEssentials

extension SessionManager {
    /// A file to fetch.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - destination: where it goes; see there for what is made when, and what stays. Absent: a file in the system's
    ///     temporary directory, for the caller to move or to remove.
    public func download(
        _ request: some RequestConvertible, to destination: DownloadDestination = .temporary
    ) -> DownloadRequest {
        let intention = Result { () throws(TransferError) in
            try destination.check()
            return try request.asRequest()
        }
        return DownloadRequest(
            intention, placement: .decided(by: destination), resumeData: nil, progress: TransferProgress(),
            manager: self)
    }

    /// A file to fetch.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - path: the file's final path, absolute or relative to the process's directory.
    ///   - options: what may be done to the file system for the file's sake. Without any, a name that is taken or a
    ///     directory that is missing fails the request.
    public func download(
        _ request: some RequestConvertible, to path: String, options: DownloadDestination.Options = []
    ) -> DownloadRequest {
        download(request, to: .path(path, options: options))
    }

    /// A file to fetch.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - file: the file's final place, of the scheme `file`.
    ///   - options: what may be done to the file system for the file's sake. Without any, a name that is taken or a
    ///     directory that is missing fails the request.
    public func download(
        _ request: some RequestConvertible, to file: URL, options: DownloadDestination.Options = []
    ) -> DownloadRequest {
        download(request, to: .file(file, options: options))
    }

    /// Goes on with a download that stopped, in this process or in one that is gone; the adapter is asked as for any
    /// other.
    ///
    /// Where another version of the resource is there by now it is fetched whole, so that the bytes of two are never
    /// joined. Where what the resume data speak of is gone or has changed, everything is fetched anew.
    ///
    /// - Parameters:
    ///   - resumeData: of a request that was given a ``DownloadDestination``; with others, the request fails as
    ///     ``TransferError/Code/invalidRequest``.
    ///   - request: in the place of the one they hold, which lacks what proves who asks. With another URL everything is
    ///     fetched anew.
    ///   - destination: absent: as it was decided then. The part moves there; onto another file system it cannot, and
    ///     everything is fetched anew.
    public func download(
        resumingWith resumeData: ResumeData, request: (any RequestConvertible)? = nil,
        to destination: DownloadDestination? = nil
    ) -> DownloadRequest {
        let intention = Result { () throws(TransferError) in
            guard let record = resumeData.record else {
                throw TransferError(
                    .invalidRequest, "these resume data speak of a part that somebody else keeps: say where it lies")
            }
            try destination?.check()
            return try request?.asRequest() ?? record.request.request
        }
        return DownloadRequest(
            intention,
            placement: .decided(by: destination ?? resumeData.record?.decision.destination ?? .temporary),
            resumeData: resumeData,
            progress: TransferProgress(
                completedBytes: resumeData.ranges.contiguousEnd, totalBytes: resumeData.total),
            manager: self)
    }
}

extension Session {
    /// A task that fetches a file; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - destination: asked for once the head of the answer is judged.
    ///   - resumeData: of an earlier task that was given a destination.
    ///   - progress: for counts that go on from an earlier task's.
    public func downloadTask(
        with request: TransferRequest, to destination: DownloadDestination = .temporary,
        resumeData: ResumeData? = nil, progress: TransferProgress = TransferProgress()
    ) -> DownloadTask {
        DownloadTask(
            request, placement: .decided(by: destination), resumeData: resumeData, progress: progress, session: self)
    }
}
