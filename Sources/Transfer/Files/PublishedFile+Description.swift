extension PublishedFile: CustomStringConvertible {
    /// The path and the size, as in `/var/tmp/big.iso (12 bytes, verified)`.
    public var description: String {
        "\(ReadableText.line(path)) (\(ReadableText.bytes(size))\(isVerified ? ", verified" : ""))"
    }
}
