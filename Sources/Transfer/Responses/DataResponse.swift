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

extension DataResponse: CustomStringConvertible, CustomDebugStringConvertible {
    private var size: String { data.map { ReadableText.bytes($0.count) } ?? "no body was kept" }

    /// The result: `success: 12 bytes`, with the type of a value other than the body as in `success: String, 12 bytes`,
    /// or `failure:` and the message. The value itself is left out, since a body may be a secret.
    public var description: String { ResponseText.result(result, ResponseText.value(Value.self, of: size)) }

    /// Lines about the request, the response, the size of the body, the times and the result. Secrets are left out:
    /// those of URLs, header fields that may contain one, and the body.
    public var debugDescription: String {
        (ResponseText.head(request, head) + ["[Body]: \(size)"] + ResponseText.end(metrics, description))
            .joined(separator: "\n")
    }
}

extension DownloadResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// The result: `success:` with the file as in `/var/tmp/big.iso (12 bytes, verified)`, or with the type of a value
    /// that was made of it as in `success: String, 12 bytes`, or `failure:` and the message. The value itself is left
    /// out, since a file may be a secret.
    public var description: String { ResponseText.result(result, valueText) }

    private var valueText: String {
        if case .success(let file as PublishedFile) = result { return file.description }
        return ResponseText.value(Value.self, of: file.map { ReadableText.bytes($0.size) } ?? "no file")
    }

    /// Lines about the request, the response, the file, the times and the result. Secrets are left out: those of URLs,
    /// header fields that may contain one, and the contents of the file.
    public var debugDescription: String {
        var lines = ResponseText.head(request, head) + ["[Body]: \(file?.description ?? "no file")"]
        if let resumeData { lines.append("[Resume data]: \(resumeData)") }
        return (lines + ResponseText.end(metrics, description)).joined(separator: "\n")
    }
}
