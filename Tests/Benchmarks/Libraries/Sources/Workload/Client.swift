/// An HTTP client that is measured. All requests of a client use one session.
public protocol Client: Sendable {
    /// Creates a client that uses at most `connections` connections at once.
    init(connections: Int) throws

    /// Fetches a response into memory.
    ///
    /// - Returns: the number of bytes.
    func get(_ url: String) async throws -> Int

    /// Fetches a response into a new file.
    func download(_ url: String, to path: String) async throws

    /// Sends bytes from memory by `PUT`.
    func upload(_ bytes: [UInt8], to url: String) async throws

    /// Sends a file by `PUT`.
    func upload(file path: String, to url: String) async throws

    /// Ends the session.
    func close() async throws
}

/// A response with an unexpected status.
public struct UnexpectedStatus: Error {
    public let status: Int

    public init(_ status: Int) { self.status = status }
}
