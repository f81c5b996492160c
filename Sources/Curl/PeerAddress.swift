/// The text of an address with a port.
package enum PeerAddress {
    /// Returns the address and the port, as in `192.0.2.1:443` and `[2001:db8::1]:80`.
    ///
    /// - Parameter port: the port; `nil` or 0 if there is none.
    package static func text(_ address: String, port: Int?) -> String {
        let host = address.utf8.contains(UInt8(ascii: ":")) ? "[\(address)]" : address
        guard let port, port > 0 else { return host }
        return "\(host):\(port)"
    }
}
