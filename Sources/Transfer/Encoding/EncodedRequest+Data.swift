public import FoundationEssentials

extension EncodedRequest {
    /// Creates the result of an encoding with a body.
    @_disfavoredOverload
    public init(request: TransferRequest, body: Data) {
        self.init(request: request, body: Array(body))
    }

    /// The body as `Data`; `nil` if the parameters are in the URL.
    public var data: Data? {
        get { body.map { Data($0) } }
        set { body = newValue.map { Array($0) } }
    }
}
