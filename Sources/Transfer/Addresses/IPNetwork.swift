/// A network of IPv4 or IPv6 addresses (CIDR, RFC 4632): all that begin with the same bits.
public struct IPNetwork: Sendable, Hashable, CustomStringConvertible {
    private let family: IPAddress.Family
    private let number: UInt128
    /// How many of an address's bits are the network's.
    public let prefixLength: Int

    /// A network of IPv4, such as `IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)`.
    ///
    /// - Parameters:
    ///   - address: one of its addresses.
    ///   - prefixLength: 0 to 32; a number beyond these counts as the nearest of them.
    public init(ipv4 address: UInt32, prefixLength: Int) {
        self.init(IPAddress(ipv4: address), prefixLength)
    }

    /// A network of IPv6, such as `IPNetwork(ipv6: 1, prefixLength: 128)`.
    ///
    /// - Parameters:
    ///   - address: one of its addresses.
    ///   - prefixLength: 0 to 128; a number beyond these counts as the nearest of them.
    public init(ipv6 address: UInt128, prefixLength: Int) {
        self.init(IPAddress(ipv6: address), prefixLength)
    }

    private init(_ address: IPAddress, _ prefixLength: Int) {
        family = address.family
        self.prefixLength = max(0, min(prefixLength, address.family.width))
        let rest = UInt128(address.family.width - self.prefixLength)
        // A shift by all of the bits makes 0.
        number = (address.number >> rest) << rest
    }

    /// Whether a connection to `address` may reach this network, as the address itself or one that it stands for.
    func isReached(by address: IPAddress) -> Bool { address.targets.contains { contains($0) } }

    private func contains(_ address: IPAddress) -> Bool {
        address.family == family && (address.number ^ number) >> UInt128(family.width - prefixLength) == 0
    }

    public var description: String {
        let address =
            family == .ipv4 ? IPAddress(ipv4: UInt32(truncatingIfNeeded: number)) : IPAddress(ipv6: number)
        return "\(address)/\(prefixLength)"
    }
}
