public import FoundationEssentials

/// A request that can restrict the acceptable responses.
public protocol ValidatedRequest: Request {}

extension DataRequest: ValidatedRequest {}
extension DownloadRequest: ValidatedRequest {}

extension ValidatedRequest {
    /// Fails the request for a status outside `range`, with ``TransferError/Code/httpStatus``.
    @discardableResult
    public func validate(statusCode range: some Collection<Int> & Sendable) -> Self {
        add(.status(in: range))
        return self
    }

    /// Fails the request for a media type that matches none of `types` (`text/*` and `*/*` are allowed), with
    /// ``TransferError/Code/unacceptableContentType``. An empty body matches every type.
    @discardableResult
    public func validate(contentType types: [String]) -> Self {
        add(.contentType { _ in types })
        return self
    }

    /// Validates the status as `validate(statusCode: 200..<300)` does, and the media type against the request's
    /// `Accept`.
    @discardableResult
    public func validate() -> Self {
        add(.standard)
        return self
    }
}

extension DataRequest {
    /// Fails the request if `validator` returns an error. An error of another type than ``TransferError`` is available
    /// as ``TransferError/underlying``.
    @discardableResult
    public func validate(
        _ validator: @escaping @Sendable (TransferRequest, ResponseHead, Data?) -> Result<Void, any Error>
    ) -> Self {
        add(Validator { Validator.error(from: validator($0.request, $0.head, $0.data)) })
        return self
    }
}

extension DownloadRequest {
    /// Fails the request if `validator` returns an error, before a byte of the body is received.
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
            TransferError(.validationFailed, "the response failed validation: \(error)", underlying: error)
        }
    }
}
