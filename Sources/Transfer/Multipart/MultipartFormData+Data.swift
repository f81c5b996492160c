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

    /// Adds the regular file at a URL; see ``append(fileAt:name:fileName:mimeType:)``.
    ///
    /// - Parameters:
    ///   - file: a URL of the scheme `file`; any other is an error.
    ///   - name: the field's name.
    ///   - fileName: the file's name in the form; by default the last component of the URL's path.
    ///   - mimeType: the media type; by default guessed from the file's name.
    public mutating func append(_ file: URL, name: String, fileName: String? = nil, mimeType: String? = nil) {
        attempt { () throws(TransferError) in
            try Self.part(
                try UploadSource(file), at: file.path(percentEncoded: false), name: name, fileName: fileName,
                mimeType: mimeType)
        }
    }

    /// Returns the whole body, encoded in memory, as `Data`.
    ///
    /// - Throws: the errors of ``encode()``.
    public func encodedData() throws(TransferError) -> Data { Data(try encode()) }
}
