import TaskModel

extension Metalink {
    /// Parses a Metalink.
    ///
    /// - Parameters:
    ///   - file: the name to print in messages.
    ///   - limit: the maximum number of files.
    ///   - resolve: returns the URL that a relative one stands for (RFC 3986, section 5), or `nil` for one that is invalid;
    ///     `nil` where the Metalink has no URL of its own.
    /// - Throws: ``FileError`` for the first fault in the file: XML that is not well-formed or has a document type
    ///   definition, a name that is not a safe relative path, an invalid digest, size or URL, a file without a URL, or
    ///   more than `limit` files.
    package init(
        parsing bytes: [UInt8], file: String, limit: Int = Limit.files, resolve: ((String) -> String?)? = nil
    ) throws(FileError) {
        var reader = try MetalinkReader(bytes, file: file, limit: limit, resolve: resolve)
        files = try reader.read()
    }
}
