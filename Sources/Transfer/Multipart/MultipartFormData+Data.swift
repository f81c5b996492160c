public import FoundationEssentials

extension MultipartFormData {
    /// Adds data.
    ///
    /// - Parameters:
    ///   - data: the part's body.
    ///   - name: the field's name.
    ///   - fileName: the file's name, which makes the part a file.
    ///   - mimeType: the media type; by default guessed from the file's name.
    @_disfavoredOverload
    public mutating func append(_ data: Data, name: String, fileName: String? = nil, mimeType: String? = nil) {
        append(Array(data), name: name, fileName: fileName, mimeType: mimeType)
    }

    /// Returns the whole body, encoded in memory, as `Data`.
    ///
    /// - Throws: the errors of ``encode()``.
    public func encodedData() throws(TransferError) -> Data { Data(try encode()) }
}
