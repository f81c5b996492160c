/// Where a form's body is after it was encoded.
public enum MultipartFormDataEncodingResult: Sendable, Equatable {
    /// In memory, with the value for the request's `Content-Type`.
    case inMemory(body: [UInt8], contentType: String)
    /// In a file that is the caller's to remove; `size` in bytes.
    case onDisk(path: String, contentType: String, size: Int64)
}

extension MultipartFormData {
    /// Encodes in memory or into a file, as the exact ``contentLength`` demands.
    ///
    /// - Parameters:
    ///   - threshold: bytes, headers and boundaries included; a body of more than that goes into a file.
    ///   - temporaryDirectory: there the file gets a random name that begins with `dld-form-`.
    public func encode(
        threshold: Int64 = MultipartFormData.defaultThreshold, temporaryDirectory: String
    ) throws(TransferError) -> MultipartFormDataEncodingResult {
        try encode(threshold: threshold, temporaryDirectory: temporaryDirectory) { true }
    }

    /// - Parameter isWanted: asked piece by piece; where it says no, the encoding ends as cancelled.
    func encode(
        threshold: Int64, temporaryDirectory: String, while isWanted: () -> Bool
    ) throws(TransferError) -> MultipartFormDataEncodingResult {
        if contentLength <= threshold { return .inMemory(body: try encode(), contentType: contentType) }
        var path = temporaryDirectory + "/dld-form-"
        // So many random bits that nobody who may write there can have put something in the way.
        for _ in 0..<2 { path += String(UInt64.random(in: 0...UInt64.max), radix: 16) }
        try write(toFileAt: path, while: isWanted)
        return .onDisk(path: path, contentType: contentType, size: contentLength)
    }
}
