import Glibc

/// An address of IPv4 or IPv6.
struct IPAddress: Hashable, CustomStringConvertible {
    enum Family: Int32 {
        case ipv4 = 2
        case ipv6 = 10

        /// Bits of an address.
        var width: Int { self == .ipv4 ? 32 : 128 }
    }

    let family: Family
    /// Its bits, of which IPv4 has 32.
    let number: UInt128

    init(ipv4 number: UInt32) { (family, self.number) = (.ipv4, UInt128(number)) }

    init(ipv6 number: UInt128) { (family, self.number) = (.ipv6, number) }

    /// - Parameter bytes: 4 or 16, in the network's order.
    init?(bytes: UnsafeRawBufferPointer) {
        switch bytes.count {
        case 4: family = .ipv4
        case 16: family = .ipv6
        default: return nil
        }
        number = bytes.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// - Parameter host: of a URL: an IPv6 address in brackets or without, with a zone or without; an IPv4 address in any
    ///   notation that `inet_aton` knows, with a dot behind it or without.
    init?(host: String) {
        var text = Substring(host)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        // As some write a name that is whole.
        if text.hasSuffix(".") { text = text.dropLast() }
        text = text.prefix { $0 != "%" }
        let literal = String(text)
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET6, literal, &bytes) == 1 {
            guard let address = bytes.withUnsafeBytes(IPAddress.init(bytes:)) else { return nil }
            self = address
        } else if let number = LooseIPv4.number(of: literal) {
            self.init(ipv4: number)
        } else {
            return nil
        }
    }

    /// What a connection to the address may reach, itself first: the IPv4 addresses that it stands for, and the local
    /// host for the unspecified address, to which Linux connects so.
    var targets: [IPAddress] {
        var all = [self]
        if number == 0 { all += [Self.loopback4, Self.loopback6] }
        for target in embedded { all += target.targets }
        return all
    }

    private static let loopback4 = IPAddress(ipv4: 0x7F00_0001)
    private static let loopback6 = IPAddress(ipv6: 1)

    /// The IPv4 addresses that an IPv6 address holds in the places that standards give them.
    private var embedded: [IPAddress] {
        guard family == .ipv6 else { return [] }
        let last = IPAddress(ipv4: UInt32(truncatingIfNeeded: number))
        switch number >> 32 {
        // IPv4-compatible (RFC 4291, section 2.5.5.1), but for the unspecified address and the loopback's.
        case 0: return number > 1 ? [last] : []
        // IPv4-mapped (section 2.5.5.2) and IPv4-translated (RFC 2765).
        case 0xFFFF, 0xFFFF_0000: return [last]
        // NAT64's well-known prefix (RFC 6052).
        case 0x0064_FF9B << 64: return [last]
        default: break
        }
        // NAT64's prefix for local use (RFC 8215): the address stands at the end, or behind 48 bits and around bit 64.
        if number >> 80 == 0x0064_FF9B_0001 {
            let split = (number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF
            return [last, IPAddress(ipv4: UInt32(truncatingIfNeeded: split))]
        }
        // 6to4 (RFC 3056).
        return number >> 112 == 0x2002 ? [IPAddress(ipv4: UInt32(truncatingIfNeeded: number >> 80))] : []
    }

    var description: String {
        var bytes = [UInt8](repeating: 0, count: family.width / 8)
        for index in bytes.indices {
            bytes[index] = UInt8(truncatingIfNeeded: number >> UInt128(8 * (bytes.count - 1 - index)))
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        // It has room for the longest address.
        _ = inet_ntop(family.rawValue, &bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
