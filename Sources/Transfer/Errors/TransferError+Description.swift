extension TransferError.Code: CustomStringConvertible {
    /// The ``rawValue``, such as `timeout`.
    public var description: String { rawValue }
}

extension TransferError: CustomDebugStringConvertible {
    /// The code and the message, as in `http: there is no such file on the server (404)`. Like the message, it contains
    /// no secrets.
    public var debugDescription: String { "\(code): \(message)" }
}
