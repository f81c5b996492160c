/// The location of an encoded form's body.
public enum EncodedMultipartFormData: Sendable, Equatable {
    /// The body in memory, with the value for the request's `Content-Type`.
    case inMemory(body: [UInt8], contentType: String)
    /// The body in a file that the caller has to remove; `size` in bytes.
    case onDisk(path: String, contentType: String, size: Int64)
}

extension MultipartFormData {
    /// Encodes the form in memory or into a file, depending on the exact ``contentLength``.
    ///
    /// - Parameters:
    ///   - threshold: the maximum body size in memory, headers and boundaries included, in bytes; a larger body goes
    ///     into a file.
    ///   - temporaryDirectory: the directory for the file, which gets a random name that begins with `dld-form-`.
    public func encode(
        threshold: Int64 = MultipartFormData.defaultThreshold, temporaryDirectory: String
    ) throws(TransferError) -> EncodedMultipartFormData {
        try encode(threshold: threshold, temporaryDirectory: temporaryDirectory) { true }
    }

    /// - Parameter isWanted: called for each piece; if it returns `false`, the encoding ends as cancelled.
    func encode(
        threshold: Int64, temporaryDirectory: String, while isWanted: () -> Bool
    ) throws(TransferError) -> EncodedMultipartFormData {
        if contentLength <= threshold { return .inMemory(body: try encode(), contentType: contentType) }
        var path = temporaryDirectory + "/dld-form-"
        // The name has so many random bits that another user of the directory cannot create it first.
        for _ in 0..<2 { path += String(UInt64.random(in: 0...UInt64.max), radix: 16) }
        try write(toFileAt: path, while: isWanted)
        return .onDisk(path: path, contentType: contentType, size: contentLength)
    }
}
