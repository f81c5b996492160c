public import FoundationEssentials

extension ResumeData {
    /// Decodes stored resume data.
    ///
    /// - Returns: `nil` if `bytes` are not resume data of this format. The download then starts from the beginning.
    @_disfavoredOverload
    public init?(bytes: Data) { self.init(bytes: Array(bytes)) }

    /// The encoded form as `Data`, for storage.
    public var data: Data { Data(bytes) }
}
