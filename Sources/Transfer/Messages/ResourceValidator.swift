/// What tells one version of a resource from another (RFC 9110, section 8.8).
public struct ResourceValidator: Sendable, Equatable, Codable {
    /// As sent, quotes and `W/` included.
    public var entityTag: String?
    /// As sent.
    public var lastModified: String?
    /// Last-Modified lies so far before the answer's Date that no later change can hide behind it.
    public var isDateStrong = false
    /// Last-Modified is of about the time of the answer: it may be one that the server makes up for each.
    var isDateMomentary: Bool?

    /// A validator of what an answer said; both may be missing.
    public init(entityTag: String? = nil, lastModified: String? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    /// - Parameter date: the answer's `Date`; a Last-Modified at least 60 seconds older is strong (section 8.8.2.2).
    init(entityTag: String?, lastModified: String?, date: String?) {
        self.init(entityTag: entityTag, lastModified: lastModified)
        if let lastModified, let date, let modified = HTTPDate.parse(lastModified), let sent = HTTPDate.parse(date) {
            isDateStrong = sent - modified >= 60
            if !isDateStrong { isDateMomentary = true }
        }
    }

    /// An entity tag that changes with every byte; never one with `W/`, nor one that could not be sent back just as
    /// it came.
    public var strongEntityTag: String? {
        guard let bytes = entityTag?.utf8, bytes.count >= 2, bytes.first == UInt8(ascii: "\""),
            bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") })
        else { return nil }
        return entityTag
    }

    /// What may stand in `If-Range`: a strong tag, or a strong date where there is no tag (section 13.1.5).
    public var ifRange: String? {
        if let strongEntityTag { return strongEntityTag }
        return entityTag == nil && isDateStrong ? lastModified : nil
    }

    /// Whether an answer with `other` may carry the same version. Silence contradicts nothing.
    func agrees(with other: ResourceValidator) -> Bool {
        if let own = strongEntityTag, let theirs = other.entityTag {
            // A tag that stayed while the date moved is one that its server made up once. Where both dates are of the
            // moment, the date is what it makes up.
            let isMadeUp = isDateMomentary ?? false && other.isDateMomentary ?? false
            return own == theirs && (hasDate(of: other) ?? true || isMadeUp)
        }
        if let own = entityTag, let theirs = other.entityTag, own != theirs { return false }
        return hasDate(of: other) ?? true
    }

    /// Whether an answer with `other` shows anything at all that ties it to this version: silence does not.
    func isShown(by other: ResourceValidator) -> Bool {
        (entityTag != nil && entityTag == other.entityTag) || hasDate(of: other) ?? false
    }

    /// - Returns: `nil` where one of them has none.
    private func hasDate(of other: ResourceValidator) -> Bool? {
        guard let own = lastModified, let theirs = other.lastModified else { return nil }
        return own == theirs
    }
}
