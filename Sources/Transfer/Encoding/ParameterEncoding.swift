import HTTPTypes

/// An encoding of parameters into a request, either into its URL or into a body.
public protocol ParameterEncoding: Sendable {
    /// Returns the request with the parameters encoded into it.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for values that the encoding cannot represent, such as a number
    ///   that is not finite or a nesting deeper than ``ParameterValue/maximumDepth``.
    func encode(_ request: TransferRequest, with parameters: Parameters) throws(TransferError) -> EncodedRequest
}

/// A request that contains its parameters.
public struct EncodedRequest: Sendable {
    /// The request. If there is a body, it has a `Content-Type`; one that was already set is kept.
    public var request: TransferRequest
    /// The body; `nil` if the parameters are in the URL.
    public var body: [UInt8]?

    /// Creates the result of an encoding; `body` is `nil` if the parameters are in the URL.
    public init(request: TransferRequest, body: [UInt8]? = nil) {
        self.request = request
        self.body = body
    }

    var requestBody: RequestBody { body.map { .data($0) } ?? .none }

    init(_ request: TransferRequest, body: [UInt8], contentType: String) {
        self.init(request: request, body: body)
        if request.headerFields[.contentType] == nil { self.request.headerFields[.contentType] = contentType }
    }
}
