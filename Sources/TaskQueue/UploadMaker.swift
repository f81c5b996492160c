import HTTPTypes
import TaskModel
import TaskStore
import Transfer

/// Turns a stored upload into a request of the engine.
struct UploadMaker {
    let manager: SessionManager
    let settings: QueueSettings
    let passedSources: PassedSources

    /// An upload about to begin, with what is to be kept of its source.
    struct Upload {
        var request: UploadRequest
        var source: SourceIdentity
    }

    /// - Parameters:
    ///   - request: what is said of it as of every task.
    ///   - specification: with its secrets.
    func make(
        _ request: TransferRequest, _ specification: TaskSpecification, _ work: TaskWork
    ) throws(TransferError) -> Upload {
        let shown = work.record.specification
        let path = specification.file ?? ""
        // Who may send it is judged anew each time, of the file that is open.
        let user = UserIdentity(uid: work.record.owner, groups: specification.groups)
        let source = try open(path, specification, as: user)
        let identity = SourceIdentity(of: source, for: shown)
        try work.resumeData.flatMap { SourceIdentity(bytes: $0, for: shown) }?.check(source)

        var request = request
        // That is for what is fetched; an answer's body is passed over.
        request.maximumBodySize = nil
        request.ignoresAnswerBody = true
        request.maximumRate = specification.limit
        // The server has acted on the request when it points elsewhere: what it shows there is for a person to look at.
        request.redirects = .followUnchanged
        // A person named whom the file is for.
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
                .sourceLost, "the daemon has begun anew and no longer has the file open that dlctl passed to it")
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
