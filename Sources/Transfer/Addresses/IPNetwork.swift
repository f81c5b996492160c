/// An IPv4 or IPv6 network (CIDR, RFC 4632): all addresses that share a prefix.
public struct IPNetwork: Sendable, Hashable, CustomStringConvertible {
    private let family: IPAddress.Family
    private let number: UInt128
    /// The number of leading bits that identify the network.
    public let prefixLength: Int

    /// Creates an IPv4 network, such as `IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)`.
    ///
    /// - Parameters:
    ///   - address: any address in the network.
    ///   - prefixLength: 0 to 32; values outside the range are clamped to it.
    public init(ipv4 address: UInt32, prefixLength: Int) {
        self.init(IPAddress(ipv4: address), prefixLength)
    }

    /// Creates an IPv6 network, such as `IPNetwork(ipv6: 1, prefixLength: 128)`.
    ///
    /// - Parameters:
    ///   - address: any address in the network.
    ///   - prefixLength: 0 to 128; values outside the range are clamped to it.
    public init(ipv6 address: UInt128, prefixLength: Int) {
        self.init(IPAddress(ipv6: address), prefixLength)
    }

    private init(_ address: IPAddress, _ prefixLength: Int) {
        family = address.family
        self.prefixLength = max(0, min(prefixLength, address.family.width))
        let rest = UInt128(address.family.width - self.prefixLength)
        // Swift's smart shift yields 0 if all bits are shifted out.
        number = (address.number >> rest) << rest
    }

    /// Whether a connection to `address` may reach this network, through the address itself or through one of its
    /// ``IPAddress/targets``.
    func isReached(by address: IPAddress) -> Bool { address.targets.contains { contains($0) } }

    /// Returns whether the network contains this very address.
    func contains(_ address: IPAddress) -> Bool {
        address.family == family && (address.number ^ number) >> UInt128(family.width - prefixLength) == 0
    }

    public var description: String {
        let address =
            family == .ipv4 ? IPAddress(ipv4: UInt32(truncatingIfNeeded: number)) : IPAddress(ipv6: number)
        return "\(address)/\(prefixLength)"
    }
}
