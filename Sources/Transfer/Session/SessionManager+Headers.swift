public import FoundationEssentials
public import HTTPTypes

extension SessionManager {
    /// Returns a data request.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoding` decides.
    ///   - encoding: encodes the parameters; used only if there are any.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - modifier: changes the request after the parameters are encoded.
    @_disfavoredOverload
    public func request(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: Parameters = [:],
        encoding: any ParameterEncoding = URLEncoding(), headers: HTTPHeaders, modifier: RequestModifier? = nil
    ) -> DataRequest {
        request(
            Result { () throws(TransferError) in
                try Self.encode(url, method, parameters, encoding, try HTTPFields(headers), modifier).get()
            })
    }

    /// Returns a request to download a file.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoding` decides.
    ///   - encoding: encodes the parameters; used only if there are any.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - destination: the place of the file.
    ///   - modifier: changes the request after the parameters are encoded.
    @_disfavoredOverload
    public func download(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: Parameters = [:],
        encoding: any ParameterEncoding = URLEncoding(), headers: HTTPHeaders,
        to destination: DownloadDestination = .temporary, modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        download(
            Result { () throws(TransferError) in
                try Self.encode(url, method, parameters, encoding, try HTTPFields(headers), modifier).get()
            }, to: destination)
    }

    // MARK: Uploads

    /// Returns a request to send a body.
    ///
    /// - Parameters:
    ///   - body: data, a file or a stream.
    ///   - url: an absolute URL.
    ///   - method: the method, by default `POST`.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - progress: counts the bytes of the body.
    public func upload(
        _ body: RequestBody, to url: some URLConvertible, method: HTTPRequest.Method = .post,
        headers: HTTPHeaders = [:], progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        UploadRequest(
            Result { () throws(TransferError) in
                TransferRequest(url: try url.asURLText(), method: method, headerFields: try HTTPFields(headers))
            }, body: body, progress: progress, manager: self)
    }

    /// Returns a request to send data.
    ///
    /// - Parameters:
    ///   - data: the body.
    ///   - url: an absolute URL.
    ///   - method: the method, by default `POST`.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - progress: counts the bytes of the body.
    public func upload(
        _ data: Data, to url: some URLConvertible, method: HTTPRequest.Method = .post, headers: HTTPHeaders = [:],
        progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(.data(Array(data)), to: url, method: method, headers: headers, progress: progress)
    }

    // MARK: Encoded requests

    func request(_ encoded: Result<EncodedRequest, TransferError>) -> DataRequest {
        make(encoded.map(\.request), body: (try? encoded.get())?.requestBody ?? .none)
    }

    func download(
        _ encoded: Result<EncodedRequest, TransferError>, to destination: DownloadDestination
    ) -> DownloadRequest {
        download(encoded.map(\.request), body: (try? encoded.get())?.requestBody ?? .none, to: destination)
    }
}
