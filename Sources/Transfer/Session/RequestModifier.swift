import HTTPTypes

/// A closure that changes a request once, when it is created and before any adapter.
///
///     manager.request("https://example.org/") { $0.cachePolicy = .reloadIgnoringLocalCacheData }
///
/// If it throws, the request fails with the error: a ``TransferError`` as it is, and any other one as the
/// ``TransferError/underlying`` error of ``TransferError/Code/invalidRequest``.
public typealias RequestModifier = (inout TransferRequest) throws -> Void

/// The creation of the request that a caller intends.
enum RequestIntention {
    /// Returns the request after the modifier, or the reason why there is none.
    static func make(
        _ request: some RequestConvertible, _ modifier: RequestModifier?
    ) -> Result<TransferRequest, TransferError> {
        Result { () throws(TransferError) in
            var made = try request.asRequest()
            try apply(modifier, to: &made)
            return made
        }
    }

    /// Returns the request that sends a body. A URL alone is sent to with `POST`.
    static func make(
        sending request: some RequestConvertible, _ modifier: RequestModifier?
    ) -> Result<TransferRequest, TransferError> {
        Result { () throws(TransferError) in
            var made = try request.asRequest()
            if request is any URLConvertible { made.method = .post }
            try apply(modifier, to: &made)
            return made
        }
    }

    /// Applies the modifier.
    static func apply(_ modifier: RequestModifier?, to request: inout TransferRequest) throws(TransferError) {
        do {
            try modifier?(&request)
        } catch let error as TransferError {
            throw error
        } catch {
            throw TransferError(
                .invalidRequest, "the modifier of the request failed: \(error)", underlying: error)
        }
    }
}
