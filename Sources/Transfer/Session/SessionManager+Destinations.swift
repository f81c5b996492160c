public import FoundationEssentials
public import HTTPTypes

extension SessionManager {
    /// Returns a request to download a file.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - destination: the place of the file. ``DownloadDestination`` describes when files are created and which stay.
    ///     By default: a file in the system's temporary directory, for the caller to move or remove.
    ///   - modifier: changes the request before it is sent.
    public func download(
        _ request: some RequestConvertible, to destination: DownloadDestination = .temporary,
        modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        download(RequestIntention.make(request, modifier), body: .none, to: destination)
    }

    /// Returns a request to download a file.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - path: the file's final path, absolute or relative to the process's directory.
    ///   - options: permitted changes to the file system. Without any, an existing name or a missing directory fails
    ///     the request.
    ///   - modifier: changes the request before it is sent.
    public func download(
        _ request: some RequestConvertible, to path: String, options: DownloadDestination.Options = [],
        modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        download(request, to: .path(path, options: options), modifier: modifier)
    }

    /// Returns a request to download a file whose place a closure decides.
    ///
    ///     manager.download(url) { temporary, head in ("/srv/\(temporary.suggestedName)", [.removePreviousFile]) }
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - decide: decides the place; see ``DownloadDestination/Decide``.
    public func download(
        _ request: some RequestConvertible, to decide: @escaping DownloadDestination.Decide
    ) -> DownloadRequest {
        download(request, to: DownloadDestination(decide))
    }

    /// Returns a request to download a file whose place a closure decides as a file URL.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - decide: decides the place; see ``DownloadDestination/DecideURL``.
    @_disfavoredOverload
    public func download(
        _ request: some RequestConvertible, to decide: @escaping DownloadDestination.DecideURL
    ) -> DownloadRequest {
        download(request, to: DownloadDestination(decide))
    }

    /// Returns a request to download a file with a known digest.
    ///
    ///     let file = try await manager.download(url, to: "/srv/image.iso", digest: .sha256("9f86…")).value
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - path: the file's final path, absolute or relative to the process's directory.
    ///   - options: permitted changes to the file system.
    ///   - digest: the required digest; see ``DownloadDestination/digest``.
    ///   - modifier: changes the request before it is sent.
    public func download(
        _ request: some RequestConvertible, to path: String, options: DownloadDestination.Options = [],
        digest: FileDigest, modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        download(request, to: .path(path, options: options).verified(by: digest), modifier: modifier)
    }

    /// Returns a request to download the response to parameters.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method. See ``DownloadRequest`` for methods other than `GET`.
    ///   - parameters: encoded into the query or the body, as `encoding` decides.
    ///   - encoding: encodes the parameters; used only if there are any.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - destination: the place of the file.
    ///   - modifier: changes the request after the parameters are encoded.
    public func download(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: Parameters,
        encoding: any ParameterEncoding = URLEncoding(), headers: HTTPFields = [:],
        to destination: DownloadDestination = .temporary, modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        let encoded = Self.encode(url, method, parameters, encoding, headers, modifier)
        return download(encoded.map(\.request), body: (try? encoded.get())?.requestBody ?? .none, to: destination)
    }

    /// Returns a request to download the response to a request with a body; see ``DownloadRequest``.
    ///
    /// - Parameters:
    ///   - request: the request to send; a URL alone is sent to with `POST`.
    ///   - body: the body of the request.
    ///   - destination: the place of the file.
    ///   - modifier: changes the request before it is sent.
    public func download(
        _ request: some RequestConvertible, sending body: RequestBody,
        to destination: DownloadDestination = .temporary, modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        download(RequestIntention.make(sending: request, modifier), body: body, to: destination)
    }

    func download(
        _ intention: Result<TransferRequest, TransferError>, body: RequestBody, to destination: DownloadDestination
    ) -> DownloadRequest {
        let checked = intention.flatMap { request in
            Result { () throws(TransferError) in
                try destination.check()
                return request
            }
        }
        return DownloadRequest(
            checked, body: body, placement: .decided(by: destination), resumeData: nil, progress: TransferProgress(),
            manager: self)
    }

    /// Returns a request to download a file.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - file: the final location of the file, of the scheme `file`.
    ///   - options: permitted changes to the file system. Without any, an existing name or a missing directory fails
    ///     the request.
    ///   - modifier: changes the request before it is sent.
    public func download(
        _ request: some RequestConvertible, to file: URL, options: DownloadDestination.Options = [],
        modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        download(request, to: .file(file, options: options), modifier: modifier)
    }

    /// Resumes a download that stopped, in this process or in an earlier one. The adapter is called as for any other
    /// request.
    ///
    /// If the resource has changed, it is fetched completely, so that bytes of two versions are never joined. If the
    /// part file that the resume data describe is gone or changed, everything is fetched again.
    ///
    /// - Parameters:
    ///   - resumeData: resume data of a request that was given a ``DownloadDestination``; with others, the request
    ///     fails with ``TransferError/Code/invalidRequest``.
    ///   - request: the request to use instead of the stored one, which holds no credentials. With another URL,
    ///     or a method other than `GET`, everything is fetched again.
    ///   - destination: the destination; by default the one decided earlier. The part file is moved there, but not onto
    ///     another file system: then everything is fetched again.
    ///   - modifier: changes the request before it is sent, the stored one too.
    public func download(
        resumingWith resumeData: ResumeData, request: (any RequestConvertible)? = nil,
        to destination: DownloadDestination? = nil, modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        let intention = Result { () throws(TransferError) in
            guard let record = resumeData.record else {
                throw TransferError(
                    .invalidRequest, "the resume data refer to a part file that another owner keeps: give its location")
            }
            try destination?.check()
            return try RequestIntention.make(request?.asRequest() ?? record.request.request, modifier).get()
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
    /// Creates a task that downloads a file; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - destination: evaluated after the head of the response is validated.
    ///   - resumeData: resume data of an earlier task that was given a destination.
    ///   - progress: continues the counts of an earlier task.
    ///   - body: the request's body; `.none` for no body. See ``DownloadRequest`` for methods other than `GET`.
    public func downloadTask(
        with request: TransferRequest, to destination: DownloadDestination = .temporary,
        resumeData: ResumeData? = nil, progress: TransferProgress = TransferProgress(), body: RequestBody = .none
    ) -> DownloadTask {
        DownloadTask(
            request, body: body, placement: .decided(by: destination), resumeData: resumeData, progress: progress,
            session: self)
    }
}
