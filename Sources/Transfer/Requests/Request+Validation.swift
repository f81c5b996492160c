/// Requests that are to be content with some answers alone.
public protocol ValidatedRequest: Request {}

extension DataRequest: ValidatedRequest {}
extension DownloadRequest: ValidatedRequest {}

extension ValidatedRequest {
    /// Fails the request for a status outside of `range`, with ``TransferError/Code/httpStatus``.
    @discardableResult
    public func validate(statusCode range: some Collection<Int> & Sendable) -> Self {
        add(.status(in: range))
        return self
    }

    /// Fails the request for a media type that is none of `types` (`text/*` and `*/*` are types too), with
    /// ``TransferError/Code/unacceptableContentType``. An empty body is of every type.
    @discardableResult
    public func validate(contentType types: [String]) -> Self {
        add(.contentType { _ in types })
        return self
    }

    /// As `validate(statusCode: 200..<300)` and the types that the request's `Accept` names.
    @discardableResult
    public func validate() -> Self {
        add(.status(in: 200..<300))
        add(.contentType(in: Validator.accepted))
        return self
    }
}

extension DataRequest {
    /// Fails the request where `validator` says why; ``TransferError/underlying`` has its error.
    @discardableResult
    public func validate(
        _ validator: @escaping @Sendable (TransferRequest, ResponseHead, [UInt8]?) -> Result<Void, any Error>
    ) -> Self {
        add(Validator { Validator.error(from: validator($0.request, $0.head, $0.data)) })
        return self
    }
}

extension DownloadRequest {
    /// Fails the request where `validator` says why, before a byte of the body is taken.
    @discardableResult
    public func validate(
        _ validator: @escaping @Sendable (TransferRequest, ResponseHead) -> Result<Void, any Error>
    ) -> Self {
        add(Validator { Validator.error(from: validator($0.request, $0.head)) })
        return self
    }
}

extension Validator {
    static func error(from result: Result<Void, any Error>) -> TransferError? {
        switch result {
        case .success: nil
        case .failure(let error as TransferError): error
        case .failure(let error):
            TransferError(.validationFailed, "the answer was found wanting: \(error)", underlying: error)
        }
    }
}
