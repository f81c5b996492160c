import TaskModel

/// A pattern for hosts: `name`, `name:port`, `scheme://name`, or `*.name` for the names beneath it.
struct HostPattern {
    /// The pattern in lower case, without the root's dot.
    let text: String
    /// The scheme in lower case, if the pattern has one.
    private(set) var scheme: String?

    static let expectation =
        "is not a host; write a name such as example.org, NAME:PORT, https://NAME, or *.NAME for its subdomains"

    init?(_ pattern: String) {
        if let separator = pattern.firstRange(of: "://") {
            let scheme = pattern[..<separator.lowerBound]
            guard let own = Self.text(scheme: scheme, name: pattern[separator.upperBound...]) else { return nil }
            text = own
            self.scheme = scheme.lowercased()
            return
        }
        let isWildcard = pattern.utf8.starts(with: "*.".utf8)
        let name = isWildcard ? String(pattern.dropFirst(2)) : pattern
        // A character that would end the host in a URL is not allowed.
        guard !name.utf8.contains(where: { "/?#@\\*%".utf8.contains($0) }),
            let address = try? TaskAddress(parsing: "https://\(name)/")
        else { return nil }
        var host = address.host
        let isAddress = host.utf8.first == UInt8(ascii: "[")
        if !isAddress, host.utf8.last == UInt8(ascii: ".") { host = String(host.dropLast()) }
        let rest = name.utf8.suffix(from: name.utf8.lastIndex(of: UInt8(ascii: "]")) ?? name.utf8.startIndex)
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else {
            guard !isWildcard || !isAddress else { return nil }
            text = isWildcard ? "*.\(host)" : host
            return
        }
        // A colon without a port after it is invalid.
        guard !isWildcard, rest.index(after: colon) != rest.endIndex else { return nil }
        text = "\(host):\(address.port)"
    }

    /// Returns the pattern `name:port` with the port that a scheme stands for, or the one that is named.
    private static func text(scheme: Substring, name: Substring) -> String? {
        guard !name.utf8.contains(where: { "/?#@\\*%".utf8.contains($0) }), name.utf8.last != UInt8(ascii: ":"),
            let address = try? TaskAddress(parsing: "\(scheme)://\(name)/")
        else { return nil }
        var host = address.host
        if host.utf8.last == UInt8(ascii: ".") { host = String(host.dropLast()) }
        return "\(host):\(address.port)"
    }
}
