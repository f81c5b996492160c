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
