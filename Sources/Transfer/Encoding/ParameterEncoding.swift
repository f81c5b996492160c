import HTTPTypes

/// Puts parameters into a request: into its URL or into a body.
public protocol ParameterEncoding: Sendable {
    /// - Throws: ``TransferError/Code/invalidRequest`` for what the encoding has no form for, as a number that is not
    ///   finite or levels beyond ``ParameterValue/maximumDepth``.
    func encode(_ request: TransferRequest, with parameters: Parameters) throws(TransferError) -> EncodedRequest
}

/// A request with its parameters in it.
public struct EncodedRequest: Sendable {
    /// With a `Content-Type` if there is a body; one that it had before stands.
    public var request: TransferRequest
    /// `nil`: the parameters are in the URL.
    public var body: [UInt8]?

    /// What an encoding makes; without a body where the parameters went into the URL.
    public init(request: TransferRequest, body: [UInt8]? = nil) {
        self.request = request
        self.body = body
    }

    init(_ request: TransferRequest, body: [UInt8], contentType: String) {
        self.init(request: request, body: body)
        if request.headerFields[.contentType] == nil { self.request.headerFields[.contentType] = contentType }
    }
}
