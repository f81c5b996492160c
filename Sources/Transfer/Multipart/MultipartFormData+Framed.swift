extension MultipartFormData {
    /// Returns the form as a body that reads its one file while it is sent. The file is not copied, and a change to it
    /// before its last byte was read fails the request. The request's `Content-Type` is ``contentType``.
    ///
    /// - Throws: ``failure``; ``TransferError/Code/invalidRequest`` if the form has no file, several files, or a
    ///   stream: send such a form with
    ///   ``SessionManager/upload(multipartFormData:threshold:temporaryDirectory:with:progress:modifier:)``.
    public func framed() throws(TransferError) -> RequestBody {
        if let failure { throw failure }
        var (before, after): ([UInt8], [UInt8]) = ([], [])
        var file: UploadSource?
        func put(_ bytes: some Sequence<UInt8>) { if file == nil { before += bytes } else { after += bytes } }
        for part in parts {
            put((boundary.opening + part.header).utf8)
            switch part.body {
            case .data(let bytes): put(bytes)
            case .file(let source) where file == nil: file = source
            case .file, .stream:
                throw TransferError(.invalidRequest, "a form that is read as it is sent has one file, and no stream")
            }
            put("\r\n".utf8)
        }
        put(boundary.closing.utf8)
        guard let file else {
            throw TransferError(.invalidRequest, "a form that is read as it is sent has a file in it")
        }
        return .framed(FramedFile(before: before, source: file, after: after))
    }
}
