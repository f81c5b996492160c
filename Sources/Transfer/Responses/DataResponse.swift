public import FoundationEssentials

/// The result of a data or upload request.
public struct DataResponse<Value: Sendable>: Sendable {
    /// The request of the last attempt, adapted and after redirects; `nil` if it could not be created.
    public var request: TransferRequest?
    /// The head of the last attempt's response; `nil` if none was received.
    public var head: ResponseHead?
    /// The body; `nil` if it was passed to a stream or a sequence, empty if a closure of the session's delegate took
    /// it.
    public var data: Data?
    /// The value, or the error.
    public var result: Result<Value, TransferError>
    /// The metrics of all attempts.
    public var metrics: TransferMetrics

    /// The value of a successful request; otherwise `nil`.
    public var value: Value? { try? result.get() }
    /// The error of a failed request; otherwise `nil`.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
    /// The timeline of the exchange that delivered the response.
    public var timeline: ExchangeMetrics.Timeline? { metrics.last?.timeline }
    /// Whether the response came from the cache, with or without revalidation by the server.
    public var isFromCache: Bool { metrics.last?.isFromCache ?? false }
}

/// The result of a download request.
public struct DownloadResponse<Value: Sendable>: Sendable {
    /// The last request that was sent.
    public var request: TransferRequest?
    /// The head of the last attempt's response; `nil` if none was received or needed.
    public var head: ResponseHead?
    /// The completed file.
    public var file: PublishedFile?
    /// The value, or the error.
    public var result: Result<Value, TransferError>
    /// The data with which another request can resume a failed download.
    public var resumeData: ResumeData?
    /// The metrics of all attempts.
    public var metrics: TransferMetrics

    /// The value of a successful request; otherwise `nil`.
    public var value: Value? { try? result.get() }
    /// The error of a failed request; otherwise `nil`.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
    /// The timeline of the exchange that delivered the response.
    public var timeline: ExchangeMetrics.Timeline? { metrics.last?.timeline }
}
