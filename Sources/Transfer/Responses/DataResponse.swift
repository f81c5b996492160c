import FoundationEssentials

/// How a data or upload request ended.
public struct DataResponse<Value: Sendable>: Sendable {
    /// As it was sent last.
    public var request: TransferRequest?
    /// Of the last attempt's answer; `nil` where none came.
    public var head: ResponseHead?
    /// The body; `nil` where it went elsewhere.
    public var data: Data?
    /// The value, or why there is none.
    public var result: Result<Value, TransferError>
    /// Of all attempts.
    public var metrics: TransferMetrics

    /// Of a success.
    public var value: Value? { try? result.get() }
    /// Of a failure.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
    /// Of the exchange that brought the answer.
    public var timeline: ExchangeMetrics.Timeline? { metrics.last?.timeline }
    /// The answer is a stored one, whether or not the server was asked if it is still right.
    public var isFromCache: Bool { metrics.last?.isFromCache ?? false }
}

/// How a download request ended.
public struct DownloadResponse<Value: Sendable>: Sendable {
    /// As it was sent last.
    public var request: TransferRequest?
    /// Of the last attempt's answer; `nil` where none came, or none was needed.
    public var head: ResponseHead?
    /// The finished file.
    public var file: PublishedFile?
    /// The finished file, or why there is none.
    public var result: Result<Value, TransferError>
    /// Where it failed: what another request can go on with.
    public var resumeData: ResumeData?
    /// Of all attempts.
    public var metrics: TransferMetrics

    /// Of a success.
    public var value: Value? { try? result.get() }
    /// Of a failure.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
    /// Of the exchange that brought the answer.
    public var timeline: ExchangeMetrics.Timeline? { metrics.last?.timeline }
}
