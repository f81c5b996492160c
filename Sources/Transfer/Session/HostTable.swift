/// Values by host: by `name`, by `name:port`, or by `*.name` for the names beneath it.
///
/// The most specific entry counts: one with the port, then one of the name itself, then the longest wildcard. A wildcard
/// stands for one label or more. An IPv6 address stands in brackets.
public struct HostTable<Value: Sendable>: Sendable {
    private var values: [String: Value]

    /// Values by host, in any case; a name may be written with the root's dot.
    public init(_ values: [String: Value] = [:]) {
        self.values = Dictionary(values.map { (Self.folded($0.key), $0.value) }) { first, _ in first }
    }

    /// Whether there is no value for any host.
    public var isEmpty: Bool { values.isEmpty }

    /// The value for the host of this name, asked at this port; `nil` where none is given.
    public func value(forHost host: String, port: Int) -> Value? {
        if values.isEmpty { return nil }
        let host = Self.folded(host)
        if let own = values["\(host):\(port)"] ?? values[host] { return own }
        // What stands in brackets has no labels.
        guard host.utf8.first != UInt8(ascii: "[") else { return nil }
        var rest = Substring(host)
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            if let value = values["*.\(rest)"] { return value }
        }
        return nil
    }

    /// - Parameter origin: `scheme://name:port`.
    package func value(forOrigin origin: String) -> Value? {
        if values.isEmpty { return nil }
        let bytes = origin.utf8
        guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")), let port = Int(origin[bytes.index(after: colon)...]),
            let slash = bytes[..<colon].lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        return value(forHost: String(origin[bytes.index(after: slash)..<colon]), port: port)
    }

    /// In lower case, the name without the root's dot.
    private static func folded(_ pattern: String) -> String {
        let pattern = pattern.lowercased()
        let bytes = pattern.utf8
        // The first colon outside of brackets begins the port.
        let end = bytes.lastIndex(of: UInt8(ascii: "]")) ?? bytes.startIndex
        let colon = bytes[end...].firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let name = pattern[..<colon]
        guard name.utf8.last == UInt8(ascii: "."), name.utf8.count > 1 else { return pattern }
        return String(name.dropLast()) + pattern[colon...]
    }
}

extension HostTable: Equatable where Value: Equatable {}
