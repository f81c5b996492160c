import TaskModel

/// The part of a webhook's URL that is shown. The rest may be secret.
package struct WebhookAddress: Sendable, Equatable {
    /// The scheme, host and port.
    package let origin: String
    /// The path, with at most ``shownLength`` characters of each component.
    package let path: String

    /// The number of characters that are shown of a component of the path.
    private static let shownLength = 3

    /// Creates the address of a URL. Of a URL that is not valid nothing is shown.
    package init(of url: String) {
        guard let address = try? TaskAddress(parsing: url) else {
            (origin, path) = ("REDACTED", "/")
            return
        }
        origin = address.hostKey
        let rest = address.url.dropFirst(address.scheme.count + "://".count)
        let ends: Set<Character> = ["?", "#"]
        let path = rest.prefix { !ends.contains($0) }.drop { $0 != "/" && $0 != "\\" }
        let components = path.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.dropFirst()
        let shown = components.map { $0.prefix(Self.shownLength) + ($0.count > Self.shownLength ? "…" : "") }
        self.path = "/" + shown.joined(separator: "/")
    }
}
