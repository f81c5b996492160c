/// How many connections a download may use at once.
public struct Segments: Sendable, Equatable, Codable {
    /// Connections at most, at least 1.
    public var most: Int
    /// Only as many as make it faster: begun with one and grown while the rate grows. Otherwise as many as there is
    /// work for, from the moment on that the server is seen to send ranges.
    public var isAutomatic: Bool

    /// Connections of one download at most, whatever is asked for.
    public static let limit = 64

    /// As many as make the download faster, up to `most`.
    public static func automatic(upTo most: Int) -> Segments { Segments(most, isAutomatic: true) }

    /// As many as make the download faster, up to 16.
    public static let automatic = Segments.automatic(upTo: 16)

    /// So many at once, where the file is large enough and the server sends ranges.
    public static func fixed(_ count: Int) -> Segments { Segments(count, isAutomatic: false) }

    /// One connection.
    public static let one = Segments.fixed(1)

    private init(_ most: Int, isAutomatic: Bool) {
        self.most = min(Self.limit, max(1, most))
        self.isAutomatic = isAutomatic
    }
}
