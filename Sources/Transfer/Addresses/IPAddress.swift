import Glibc

/// An IPv4 or IPv6 address.
struct IPAddress: Hashable, CustomStringConvertible {
    enum Family: Int32 {
        case ipv4 = 2
        case ipv6 = 10

        /// The number of bits in an address.
        var width: Int { self == .ipv4 ? 32 : 128 }
    }

    let family: Family
    /// The address as an integer in host byte order; IPv4 uses the low 32 bits.
    let number: UInt128

    init(ipv4 number: UInt32) { (family, self.number) = (.ipv4, UInt128(number)) }

    init(ipv6 number: UInt128) { (family, self.number) = (.ipv6, number) }

    /// Creates an address from 4 or 16 bytes in network byte order; returns `nil` for any other count.
    init?(bytes: UnsafeRawBufferPointer) {
        switch bytes.count {
        case 4: family = .ipv4
        case 16: family = .ipv6
        default: return nil
        }
        number = bytes.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// Creates an address from the host of a URL.
    ///
    /// - Parameter host: an IPv6 address with or without brackets and zone, or an IPv4 address in any notation that
    ///   `inet_aton` accepts, with or without a trailing dot.
    init?(host: String) {
        var text = Substring(host)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        // A trailing dot marks a fully qualified name.
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

    /// The addresses that a connection to this address may reach, starting with the address itself. They include the
    /// IPv4 addresses embedded in it and, for the unspecified address, the loopback addresses, because Linux connects
    /// to the local host in that case.
    var targets: [IPAddress] {
        var all = [self]
        if number == 0 { all += [Self.loopback4, Self.loopback6] }
        for target in embedded { all += target.targets }
        return all
    }

    private static let loopback4 = IPAddress(ipv4: 0x7F00_0001)
    private static let loopback6 = IPAddress(ipv6: 1)

    /// The IPv4 addresses embedded in an IPv6 address at the positions that standards define.
    private var embedded: [IPAddress] {
        guard family == .ipv6 else { return [] }
        let last = IPAddress(ipv4: UInt32(truncatingIfNeeded: number))
        switch number >> 32 {
        // IPv4-compatible (RFC 4291, section 2.5.5.1), except for the unspecified and the loopback address.
        case 0: return number > 1 ? [last] : []
        // IPv4-mapped (section 2.5.5.2) and IPv4-translated (RFC 2765).
        case 0xFFFF, 0xFFFF_0000: return [last]
        // NAT64 well-known prefix (RFC 6052).
        case 0x0064_FF9B << 64: return [last]
        default: break
        }
        // NAT64 local-use prefix (RFC 8215): the IPv4 address is in the last 32 bits, or starts after 48 bits and is
        // split around bit 64.
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
        // The buffer has room for the longest address.
        _ = inet_ntop(family.rawValue, &bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
