package import TaskModel

/// A set of servers that are contacted without the proxy: `*`, a name or `.suffix`, an address, or a network in CIDR
/// notation. All but `*` and networks may end in `:PORT`.
package enum ProxyExemption: Sendable, Equatable {
    case every
    /// A name, in lower case and without a leading dot, and all names beneath it.
    case name(String, port: Int?)
    case network(NetworkRange, port: Int?)

    static let expectation = "'*', a name such as example.org or .example.org:8080, an address, or a network"

    package init?(parsing text: String) {
        if text == "*" {
            self = .every
            return
        }
        if let network = try? NetworkRange(parsing: text) {
            self = .network(network, port: nil)
            return
        }
        var name = text[...]
        var port: Int?
        // The colons of an IPv6 address are in brackets.
        let end = text.lastIndex(of: "]") ?? text.startIndex
        if let colon = text[end...].lastIndex(of: ":") {
            let digits = text[text.index(after: colon)...]
            guard let number = Int(digits), (1...65_535).contains(number), digits.utf8.allSatisfy(\.isDigit) else {
                return nil
            }
            (name, port) = (text[..<colon], number)
        }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if let network = try? NetworkRange(parsing: String(name)) {
            self = .network(network, port: port)
            return
        }
        if name.hasPrefix("*.") { name = name.dropFirst() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        guard !name.utf8.contains(where: { "/?#@\\*:%".utf8.contains($0) }),
            let address = try? TaskAddress(parsing: "http://\(name)/")
        else { return nil }
        self = .name(address.host.hasSuffix(".") ? String(address.host.dropLast()) : address.host, port: port)
    }

    /// Returns the exceptions of the environment's variable `NO_PROXY`: separated by commas or blanks. What cannot be read
    /// is ignored, since other programs read the variable too.
    package static func list(ofVariable text: String) -> [ProxyExemption] {
        text.split { $0 == "," || $0 == " " || $0 == "\t" }.prefix(Configuration.Bound.proxyExemptions)
            .compactMap { ProxyExemption(parsing: String($0)) }
    }
}
