import HTTPTypes

extension TransferRequest {
    /// The ``headerFields`` as text, for which no import of `HTTPTypes` is needed:
    ///
    ///     request.headers["X-Trace"] = "7"
    ///     request.headers.set(.authorization(bearer: token))
    ///
    /// A field with a name or value that HTTP does not permit is kept, and fails the request with
    /// ``TransferError/Code/invalidRequest``. It is not among the ``headerFields``, and is removed here only.
    public var headers: HTTPHeaders {
        get {
            var headers = HTTPHeaders(headerFields)
            for header in invalidHeaders { headers.add(HTTPHeader(header)) }
            return headers
        }
        set {
            var (fields, invalid) = (HTTPFields(), [InvalidHeader]())
            for header in newValue {
                do throws(TransferError) {
                    fields.append(try header.field())
                } catch {
                    invalid.append(
                        InvalidHeader(name: header.name, value: header.value, refusal: header.refusal))
                }
            }
            headerFields = fields
            if !(invalid.isEmpty && invalidHeaders.isEmpty) { invalidHeaders = invalid }
        }
    }

    /// Checks the header fields that were set as text.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for the first one that HTTP does not permit.
    func checkHeaders() throws(TransferError) {
        if let header = invalidHeaders.first { _ = try HTTPHeader(header).field() }
    }

    /// The request, or the error of ``checkHeaders()``.
    var checked: Result<TransferRequest, TransferError> {
        Result { () throws(TransferError) in
            try checkHeaders()
            return self
        }
    }
}

extension HTTPHeader {
    fileprivate init(_ header: InvalidHeader) {
        if let refusal = header.refusal {
            self.init(name: header.name, refusal: refusal)
        } else {
            self.init(name: header.name, value: header.value)
        }
    }
}
