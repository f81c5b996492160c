import Curl
import HTTPTypes

/// A request that sends a body and receives a response.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class UploadRequest: DataRequest, @unchecked Sendable {
    /// The body, if it is a form.
    let form: FormBody?
    let remains: UploadRemains
    /// The progress of the sent body over all attempts; as a sequence, its values over time. ``Request/progress`` is
    /// that of the response.
    public let uploadProgress: TransferProgress

    convenience init(
        _ intention: Result<TransferRequest, TransferError>, body: RequestBody, progress: TransferProgress,
        manager: SessionManager
    ) {
        self.init(intention, form: nil, body: { body }, progress: progress, manager: manager)
    }

    convenience init(
        _ intention: Result<TransferRequest, TransferError>, form: FormBody, progress: TransferProgress,
        manager: SessionManager
    ) {
        self.init(intention, form: form, body: { form.body }, progress: progress, manager: manager)
    }

    private init(
        _ intention: Result<TransferRequest, TransferError>, form: FormBody?,
        body: @escaping @Sendable () -> RequestBody, progress: TransferProgress, manager: SessionManager
    ) {
        self.form = form
        remains = UploadRemains(name: (try? intention.get())?.uploadName)
        uploadProgress = progress
        let delegate = manager.delegate.makeUploadTaskDelegate()
        delegate.setUploadProgress(progress)
        super.init(intention, body: body, delegate: delegate, manager: manager)
        starts(when: uploadProgress)
    }

    override package var mainProgress: TransferProgress { uploadProgress }

    /// The encoded body of a form; `nil` before the encoding and if it failed. A file is removed when the request is
    /// complete.
    public var multipartEncoding: EncodedMultipartFormData? { form?.result }

    /// A warning about the response, if it is a redirect to another server or to a login page: the server may not have
    /// stored the body. `nil` if there is none.
    package var doubt: String? {
        guard let response, (300..<400).contains(response.status), let location = response.value(of: "location"),
            let url = request.flatMap({ try? CurlURL($0.url) }), let target = try? CurlURL(location, relativeTo: url)
        else { return nil }
        let path = target.path.lowercased()
        let isLogin = Self.loginNames.contains { path.firstRange(of: $0) != nil }
        guard isLogin || target.host != url.host else { return nil }
        return "the server redirected to \(target.origin) after the upload (\(response.status)): it may ask for a "
            + "login, and not have stored the file"
    }

    private static let loginNames = ["login", "logon", "signin", "sign-in", "sign_in"]

    override func prepare(
        _ request: TransferRequest, then: @escaping @Sendable (Result<TransferRequest, TransferError>) -> Void
    ) {
        guard let form else { return then(.success(request)) }
        form.prepare { type in
            then(
                type.map { type in
                    var request = request
                    request.headerFields[.contentType] = type
                    return request
                })
        }
    }

    override func startsOver() {
        super.startsOver()
        starts(when: uploadProgress)
        form?.reopen()
    }

    override func cleanUp() {
        uploadProgress.finish()
        form?.finish()
        if remains.isLeft, let task { session.remove(remains, of: task) }
    }
}

extension UploadRequest {
    /// Returns the address and port of the server or of the proxy, as in `192.0.2.1:443`.
    ///
    /// - Returns: `nil` where there is no connection, and where the loop does not answer within
    ///   a second.
    public func peerAddress() async -> String? {
        guard let task = task as? any LoopTask else { return nil }
        return await task.ask { core in (task.run(on: core) as? any PeerRun)?.peerAddress }
    }
}
