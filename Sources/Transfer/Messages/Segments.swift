/// The number of connections that a download may use at once.
public struct Segments: Sendable, Equatable, Codable {
    /// The maximum number of connections, at least 1.
    public var most: Int
    /// Whether the number adapts to the throughput: a download starts with one connection and adds more while they
    /// increase the rate. Otherwise it uses as many as there is work for, once the server is known to support ranges.
    public var isAutomatic: Bool

    /// The upper limit of connections for a download, which overrides any request.
    public static let limit = 64

    /// Returns an adaptive number of connections, up to `most`.
    public static func automatic(upTo most: Int) -> Segments { Segments(most, isAutomatic: true) }

    /// An adaptive number of connections, up to 16.
    public static let automatic = Segments.automatic(upTo: 16)

    /// Returns a fixed number of connections, used if the file is large enough and the server supports ranges.
    public static func fixed(_ count: Int) -> Segments { Segments(count, isAutomatic: false) }

    /// A single connection.
    public static let one = Segments.fixed(1)

    private init(_ most: Int, isAutomatic: Bool) {
        self.most = min(Self.limit, max(1, most))
        self.isAutomatic = isAutomatic
    }
}
