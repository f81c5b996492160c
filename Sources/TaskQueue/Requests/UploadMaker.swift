import HTTPTypes
import TaskModel
import TaskStore
import Transfer

/// A converter of stored uploads into engine requests.
struct UploadMaker {
    let manager: SessionManager
    let settings: QueueSettings
    let passedSources: PassedSources

    /// An upload that is about to start, with the identity of its source for the store.
    struct Upload {
        var request: UploadRequest
        var source: SourceIdentity
    }

    /// Creates the request of an upload.
    ///
    /// - Parameters:
    ///   - request: the request with the options common to all tasks.
    ///   - specification: the task's options, including secrets.
    func make(
        _ request: TransferRequest, _ specification: TaskSpecification, _ work: TaskWork
    ) throws(TransferError) -> Upload {
        let shown = work.record.specification
        let path = specification.file ?? ""
        // The permission to send the file is checked at each attempt, on the open file.
        let user = UserIdentity(uid: work.record.owner, groups: specification.groups)
        let source = try open(path, specification, as: user)
        let identity = SourceIdentity(of: source, for: shown)
        try work.resumeData.flatMap { SourceIdentity(bytes: $0, for: shown) }?.check(source)

        var request = request
        // The size limit applies to downloads. The response body of an upload is ignored.
        request.maximumBodySize = nil
        request.ignoresAnswerBody = true
        request.maximumRate = specification.limit
        // A redirect (other than one that repeats the request unchanged) means that the server has processed the
        // request. Its target is a page for the user.
        request.redirects = .followUnchanged
        // The user chose the recipient of the file, so the body must not be sent to another origin.
        request.keepsBodyWithinOrigin = true
        request.method = specification.isForm || specification.method == "POST" ? .post : .put
        let body = try self.body(source, specification, path, &request)
        let success: [Int] = Array(200..<300) + (request.method == .post ? [301, 302, 303] : [303])
        let upload = manager.upload(body, with: request).validate(statusCode: success)
        return Upload(request: upload, source: identity)
    }

    private func open(
        _ path: String, _ specification: TaskSpecification, as user: UserIdentity
    ) throws(TransferError) -> UploadSource {
        if let name = specification.passedSource, let file = passedSources.file(named: name) {
            return try UploadSource(file, path: path)
        }
        do throws(TransferError) {
            return try UploadPermission(settings: settings, user: user).open(path)
        } catch {
            guard specification.passedSource != nil else { throw error }
            throw TransferError(
                .sourceLost, "the daemon was restarted and no longer has the open file that dlctl passed to it")
        }
    }

    private func body(
        _ source: UploadSource, _ specification: TaskSpecification, _ path: String, _ request: inout TransferRequest
    ) throws(TransferError) -> RequestBody {
        guard specification.isForm else {
            if let type = specification.contentType { request.headerFields[.contentType] = type }
            return .file(source)
        }
        var form = MultipartFormData()
        for field in specification.form {
            guard let (name, value) = TaskSpecification.splitField(field) else {
                throw TransferError(.invalidRequest, "a field of the form cannot be sent")
            }
            form.append(value, name: name)
        }
        form.append(
            source, name: specification.fileField ?? "file", fileName: FileName.last(of: path),
            mimeType: specification.contentType)
        request.headerFields[.contentType] = form.contentType
        return try form.framed()
    }
}
