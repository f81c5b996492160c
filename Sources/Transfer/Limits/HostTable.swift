/// A table of values by host. The keys are `name`, `name:port`, or `*.name` for subdomains.
///
/// The most specific entry applies: one with the port, then one with the name, then the longest wildcard. A wildcard
/// matches one or more labels. IPv6 addresses are in brackets, without a zone: an entry applies in every zone.
public struct HostTable<Value: Sendable>: Sendable {
    private var values: [String: Value]

    /// Creates a table. Host names are case-insensitive and may end in a dot.
    public init(_ values: [String: Value] = [:]) {
        self.values = Dictionary(values.map { (Self.folded($0.key), $0.value) }) { first, _ in first }
    }

    /// Whether the table has no values.
    public var isEmpty: Bool { values.isEmpty }

    /// Returns whether a value of any entry satisfies a condition.
    package func contains(where condition: (Value) -> Bool) -> Bool { values.values.contains(where: condition) }

    /// Returns the table with the values that `transform` returns for those of this one.
    package func compactMapValues<Other>(_ transform: (Value) -> Other?) -> HostTable<Other> {
        var table = HostTable<Other>()
        table.values = values.compactMapValues(transform)
        return table
    }

    /// Returns the value for a host name and port; `nil` if there is none.
    public func value(forHost host: String, port: Int) -> Value? {
        var found: Value?
        search(host, port) { value in
            found = value
            return false
        }
        return found
    }

    /// Returns the values of all entries that match a host name and port, the most specific first.
    package func values(forHost host: String, port: Int) -> [Value] {
        var found: [Value] = []
        search(host, port) { value in
            found.append(value)
            return true
        }
        return found
    }

    /// Calls `visit` with the value of each matching entry, the most specific first, until it returns false.
    private func search(_ host: String, _ port: Int, _ visit: (Value) -> Bool) {
        if values.isEmpty { return }
        var host = Self.folded(host)
        if host.utf8.first == UInt8(ascii: "["), let zone = host.utf8.firstIndex(of: UInt8(ascii: "%")) {
            host = String(host[..<zone]) + "]"
        }
        if let value = values["\(host):\(port)"], !visit(value) { return }
        if let value = values[host], !visit(value) { return }
        // A bracketed address has no labels.
        guard host.utf8.first != UInt8(ascii: "[") else { return }
        var rest = Substring(host)
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            if let value = values["*.\(rest)"], !visit(value) { return }
        }
    }

    /// Returns the value for an origin.
    ///
    /// - Parameter origin: `scheme://name:port`.
    package func value(forOrigin origin: String) -> Value? {
        if values.isEmpty { return nil }
        let bytes = origin.utf8
        guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")), let port = Int(origin[bytes.index(after: colon)...]),
            let slash = bytes[..<colon].lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        return value(forHost: String(origin[bytes.index(after: slash)..<colon]), port: port)
    }

    /// Returns the pattern in lower case, its name without a trailing dot.
    private static func folded(_ pattern: String) -> String {
        let pattern = pattern.lowercased()
        let bytes = pattern.utf8
        // The first colon outside brackets begins the port.
        let end = bytes.lastIndex(of: UInt8(ascii: "]")) ?? bytes.startIndex
        let colon = bytes[end...].firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let name = pattern[..<colon]
        guard name.utf8.last == UInt8(ascii: "."), name.utf8.count > 1 else { return pattern }
        return String(name.dropLast()) + pattern[colon...]
    }
}

extension HostTable: Equatable where Value: Equatable {}
