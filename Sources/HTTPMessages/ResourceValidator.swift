/// A validator that distinguishes versions of a resource (RFC 9110, section 8.8).
public struct ResourceValidator: Sendable, Equatable, Codable {
    /// The `ETag` as sent, including quotes and `W/`.
    public var entityTag: String?
    /// The `Last-Modified` as sent.
    public var lastModified: String?
    /// Whether `Last-Modified` is a strong validator: it is so much older than the response's `Date` that a later
    /// change would have a different date.
    public var isDateStrong = false
    /// Whether `Last-Modified` is close to the time of the response. The server may generate such a date for each
    /// response.
    var isDateMomentary: Bool?

    /// Creates a validator from a response. Both values may be missing.
    public init(entityTag: String? = nil, lastModified: String? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    /// Creates a validator from a response and its date.
    ///
    /// - Parameter date: The response's `Date`. A `Last-Modified` at least 60 seconds older is strong (section
    ///   8.8.2.2).
    package init(entityTag: String?, lastModified: String?, date: String?) {
        self.init(entityTag: entityTag, lastModified: lastModified)
        if let lastModified, let date, let modified = HTTPDate.parse(lastModified), let sent = HTTPDate.parse(date) {
            isDateStrong = sent - modified >= 60
            if !isDateStrong { isDateMomentary = true }
        }
    }

    /// The ETag if it is strong: neither weak (`W/`) nor containing characters that could not be sent back unchanged.
    public var strongEntityTag: String? {
        guard let bytes = entityTag?.utf8, bytes.count >= 2, bytes.first == UInt8(ascii: "\""),
            bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") })
        else { return nil }
        return entityTag
    }

    /// The value for `If-Range`: a strong ETag, or a strong date if there is no ETag (section 13.1.5).
    public var ifRange: String? {
        if let strongEntityTag { return strongEntityTag }
        return entityTag == nil && isDateStrong ? lastModified : nil
    }

    /// Returns whether a response with `other` may be of the same version. A missing validator is not a contradiction.
    package func agrees(with other: ResourceValidator) -> Bool {
        if let own = strongEntityTag, let theirs = other.entityTag {
            // If the date changed and the ETag did not, the server generated the ETag once and keeps sending it. If
            // both dates are close to the times of their responses, the date is the generated one.
            let isMadeUp = isDateMomentary ?? false && other.isDateMomentary ?? false
            return own == theirs && (hasDate(of: other) ?? true || isMadeUp)
        }
        if let own = entityTag, let theirs = other.entityTag, own != theirs { return false }
        return hasDate(of: other) ?? true
    }

    /// Returns whether a response with `other` gives positive evidence of the same version. A missing validator is no
    /// evidence.
    package func isShown(by other: ResourceValidator) -> Bool {
        (entityTag != nil && entityTag == other.entityTag) || hasDate(of: other) ?? false
    }

    /// Returns whether both dates are equal; `nil` if either is missing.
    private func hasDate(of other: ResourceValidator) -> Bool? {
        guard let own = lastModified, let theirs = other.lastModified else { return nil }
        return own == theirs
    }
}
