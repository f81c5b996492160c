public import FoundationEssentials

extension RequestBody {
    /// Returns a body of bytes in memory, which are copied.
    @_disfavoredOverload
    public static func data(_ data: Data) -> RequestBody { .data(Array(data)) }
}

extension BodyStream {
    /// Creates a body of the data that a sequence yields.
    ///
    /// - Parameters:
    ///   - length: the number of bytes, if known; it has to be exact, as for a sequence of arrays.
    ///   - make: creates the sequence; called for each attempt, redirect and challenge that needs the body.
    @_disfavoredOverload
    public init<Source: AsyncSequence & Sendable>(
        length: Int64? = nil, make: @escaping @Sendable () throws -> Source
    ) where Source.Element == Data {
        self.init(length: length) { try make().map { Array($0) } }
    }
}

extension FramedFile {
    /// Creates a body of a file with data before and after it.
    ///
    /// - Parameters:
    ///   - before: data sent before the file.
    ///   - source: the file.
    ///   - after: data sent after the file.
    @_disfavoredOverload
    public init(before: Data, source: UploadSource, after: Data) {
        self.init(before: Array(before), source: source, after: Array(after))
    }
}
