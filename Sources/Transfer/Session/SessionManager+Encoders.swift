public import HTTPTypes

extension SessionManager {
    /// Returns a data request with parameters of any `Encodable` type.
    ///
    ///     struct Login: Encodable, Sendable { var name: String }
    ///
    ///     manager.request(url, method: .post, parameters: Login(name: "ada"), encoder: .json)
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoder` decides.
    ///   - encoder: encodes the parameters.
    ///   - headers: fields of this request, which take precedence over the session's.
    @_disfavoredOverload
    public func request(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: some Encodable & Sendable,
        encoder: any ParameterEncoder = .urlEncodedForm, headers: HTTPHeaders = [:]
    ) -> DataRequest {
        request(
            Result { () throws(TransferError) in
                let request = TransferRequest(
                    url: try url.asURLText(), method: method, headerFields: try HTTPFields(headers))
                return try encoder.encode(parameters, into: request)
            })
    }

    /// Returns a data request with parameters of any `Encodable` type.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoder` decides.
    ///   - encoder: encodes the parameters.
    ///   - headers: fields of this request, which take precedence over the session's.
    public func request(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: some Encodable & Sendable,
        encoder: any ParameterEncoder, headers: HTTPFields
    ) -> DataRequest {
        request(url, method: method, parameters: parameters, encoder: encoder, headers: HTTPHeaders(headers))
    }

    /// Returns a data request with parameters by name, of any `Encodable` types.
    ///
    ///     manager.request(url, parameters: ["page": page, "q": text])
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoding` decides.
    ///   - encoding: encodes the parameters; used only if there are any.
    ///   - headers: fields of this request, which take precedence over the session's.
    @_disfavoredOverload
    public func request(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get,
        parameters: [String: any Encodable & Sendable], encoding: any ParameterEncoding = URLEncoding(),
        headers: HTTPHeaders = [:]
    ) -> DataRequest {
        request(
            Result { () throws(TransferError) in
                try Self.encode(
                    url, method, try ParameterValueEncoder.parameters(of: parameters), encoding,
                    try HTTPFields(headers), nil
                ).get()
            })
    }

    /// Returns a request to download the response to parameters of any `Encodable` type.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoder` decides.
    ///   - encoder: encodes the parameters.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - destination: the place of the file.
    @_disfavoredOverload
    public func download(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: some Encodable & Sendable,
        encoder: any ParameterEncoder = .urlEncodedForm, headers: HTTPHeaders = [:],
        to destination: DownloadDestination = .temporary
    ) -> DownloadRequest {
        download(
            Result { () throws(TransferError) in
                let request = TransferRequest(
                    url: try url.asURLText(), method: method, headerFields: try HTTPFields(headers))
                return try encoder.encode(parameters, into: request)
            }, to: destination)
    }

    /// Returns a request to download the response to parameters of any `Encodable` type.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoder` decides.
    ///   - encoder: encodes the parameters.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - destination: the place of the file.
    public func download(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: some Encodable & Sendable,
        encoder: any ParameterEncoder, headers: HTTPFields,
        to destination: DownloadDestination = .temporary
    ) -> DownloadRequest {
        download(
            url, method: method, parameters: parameters, encoder: encoder, headers: HTTPHeaders(headers),
            to: destination)
    }
}
