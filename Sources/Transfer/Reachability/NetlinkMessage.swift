import CLinux

/// A network message from the kernel (rtnetlink(7)), reduced to the data that determines reachability.
struct NetlinkMessage: Equatable {
    enum Content: Equatable {
        case link(NetworkLink)
        case address(NetworkAddress)
        case route(NetworkRoute)
        /// An object was removed, or messages were lost in an overrun. The state must be requested again.
        case gone
        /// The end of a dump.
        case done
        /// A failed request, with its `errno`.
        case failed(Int32)
        /// An irrelevant or malformed message.
        case other
    }

    /// The sequence number of the request that this message responds to.
    var sequence: UInt32
    /// Whether the dump changed while the kernel sent it (`NLM_F_DUMP_INTR`).
    var isInterrupted: Bool
    var content: Content
}

/// A network interface.
struct NetworkLink: Hashable {
    var index: Int32
    /// `IFF_…`
    var flags: UInt32
}

/// An address of this machine.
struct NetworkAddress: Hashable {
    var index: Int32
    var family: UInt8
    var prefixLength: UInt8
    var scope: UInt8
    /// `IFA_F_…`
    var flags: UInt32
    var bytes: [UInt8]
}

/// A route to other machines.
struct NetworkRoute: Hashable {
    var family: UInt8
    var prefixLength: UInt8
    var table: UInt32
    var type: UInt8
    /// `RTNH_F_…` and `RTM_F_…`
    var flags: UInt32
    /// The destination prefix; empty for the default route.
    var destination: [UInt8]
    /// The next hops. Each has an interface and a gateway address, which is empty if there is no gateway.
    var hops: [Hop]

    struct Hop: Hashable {
        var index: Int32
        var gateway: [UInt8]
    }
}

extension NetlinkMessage {
    /// The maximum number of next hops in a multipath route.
    static let maximumHops = 256
    private static let headerLength = 16

    /// Parses a datagram. Parsing stops at a message that is truncated or has an invalid length.
    static func parse(_ datagram: [UInt8]) -> [NetlinkMessage] {
        var rest = NetlinkBytes(datagram[...])
        var messages: [NetlinkMessage] = []
        while let length = rest.uint32(at: 0), length >= headerLength, length <= rest.count,
            let type = rest.uint16(at: 4), let flags = rest.uint16(at: 6), let sequence = rest.uint32(at: 8)
        {
            let body = rest.part(from: headerLength, to: Int(length))
            messages.append(
                NetlinkMessage(
                    sequence: sequence, isInterrupted: Int32(flags) & LINUX_NLM_F_DUMP_INTR != 0,
                    content: content(type: Int32(type), body)))
            rest.removeAligned(Int(length))
        }
        return messages
    }

    private static func content(type: Int32, _ body: NetlinkBytes) -> Content {
        switch type {
        case LINUX_NLMSG_DONE: .done
        case LINUX_NLMSG_ERROR: .failed(body.int32(at: 0).map { $0 == .min ? 0 : abs($0) } ?? 0)
        case LINUX_NLMSG_OVERRUN, LINUX_RTM_DELLINK, LINUX_RTM_DELADDR, LINUX_RTM_DELROUTE: .gone
        case LINUX_RTM_NEWLINK: link(body).map(Content.link) ?? .other
        case LINUX_RTM_NEWADDR: address(body).map(Content.address) ?? .other
        case LINUX_RTM_NEWROUTE: route(body).map(Content.route) ?? .other
        default: .other
        }
    }

    /// Parses a `struct ifinfomsg`.
    private static func link(_ body: NetlinkBytes) -> NetworkLink? {
        guard body.count >= 16, let index = body.int32(at: 4), let flags = body.uint32(at: 8) else { return nil }
        return NetworkLink(index: index, flags: flags)
    }

    /// Parses a `struct ifaddrmsg`.
    private static func address(_ body: NetlinkBytes) -> NetworkAddress? {
        guard let family = body.uint8(at: 0), let prefixLength = body.uint8(at: 1), let flags = body.uint8(at: 2),
            let scope = body.uint8(at: 3), let index = body.int32(at: 4)
        else { return nil }
        var address = NetworkAddress(
            index: index, family: family, prefixLength: prefixLength, scope: scope, flags: UInt32(flags), bytes: [])
        for (type, value) in body.part(from: 8, to: body.count).attributes {
            switch type {
            // On a point-to-point link, `IFA_ADDRESS` is the peer's address and `IFA_LOCAL` this machine's.
            case LINUX_IFA_LOCAL: address.bytes = Array(value.bytes)
            case LINUX_IFA_ADDRESS where address.bytes.isEmpty: address.bytes = Array(value.bytes)
            case LINUX_IFA_FLAGS: address.flags = value.uint32(at: 0) ?? address.flags
            default: break
            }
        }
        // IPv4 and IPv6 addresses have 4 and 16 bytes. Other protocols are not used.
        return address.bytes.count == 4 || address.bytes.count == 16 ? address : nil
    }

    /// Parses a `struct rtmsg`.
    private static func route(_ body: NetlinkBytes) -> NetworkRoute? {
        guard let family = body.uint8(at: 0), let prefixLength = body.uint8(at: 1), let table = body.uint8(at: 4),
            let type = body.uint8(at: 7), let flags = body.uint32(at: 8)
        else { return nil }
        var route = NetworkRoute(
            family: family, prefixLength: prefixLength, table: UInt32(table), type: type, flags: flags,
            destination: [], hops: [])
        var index: Int32?
        var gateway: [UInt8] = []
        for (type, value) in body.part(from: 12, to: body.count).attributes {
            switch type {
            case LINUX_RTA_DST: route.destination = Array(value.bytes.prefix(16))
            case LINUX_RTA_OIF: index = value.int32(at: 0)
            case LINUX_RTA_GATEWAY: gateway = Array(value.bytes.prefix(16))
            case LINUX_RTA_TABLE: route.table = value.uint32(at: 0) ?? route.table
            case LINUX_RTA_MULTIPATH: route.hops += hops(value)
            default: break
            }
        }
        if let index { route.hops.append(NetworkRoute.Hop(index: index, gateway: gateway)) }
        return route
    }

    /// Parses a sequence of `struct rtnexthop`, each with its own attributes.
    private static func hops(_ bytes: NetlinkBytes) -> [NetworkRoute.Hop] {
        var rest = bytes
        var hops: [NetworkRoute.Hop] = []
        while hops.count < maximumHops, let length = rest.uint16(at: 0), length >= 8, length <= rest.count,
            let flags = rest.uint8(at: 2), let index = rest.int32(at: 4)
        {
            let gateway = rest.part(from: 8, to: Int(length)).attributes.first { $0.type == LINUX_RTA_GATEWAY }
            if UInt32(flags) & (LINUX_RTNH_F_DEAD | LINUX_RTNH_F_LINKDOWN) == 0 {
                let bytes = gateway?.value.bytes.prefix(16) ?? []
                hops.append(NetworkRoute.Hop(index: index, gateway: Array(bytes)))
            }
            rest.removeAligned(Int(length))
        }
        return hops
    }
}

/// The bytes of a message, in host byte order. Reads beyond the end return `nil`.
private struct NetlinkBytes {
    private(set) var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
    }

    var count: Int { bytes.count }

    func uint8(at offset: Int) -> UInt8? { offset < count ? bytes[bytes.startIndex + offset] : nil }
    func uint16(at offset: Int) -> UInt16? { number(at: offset) }
    func uint32(at offset: Int) -> UInt32? { number(at: offset) }
    func int32(at offset: Int) -> Int32? { number(at: offset) }

    private func number<Number: FixedWidthInteger>(at offset: Int) -> Number? {
        guard offset + MemoryLayout<Number>.size <= count else { return nil }
        return bytes.dropFirst(offset).withUnsafeBytes { $0.loadUnaligned(as: Number.self) }
    }

    func part(from start: Int, to end: Int) -> NetlinkBytes { NetlinkBytes(bytes.prefix(end).dropFirst(start)) }

    /// Removes a structure and its padding. The next structure begins at a multiple of 4 bytes.
    mutating func removeAligned(_ length: Int) { bytes = bytes.dropFirst((length + 3) & ~3) }

    /// The attributes in a sequence of `struct rtattr`. The types exclude the two flag bits.
    var attributes: [(type: Int32, value: NetlinkBytes)] {
        var rest = self
        var found: [(Int32, NetlinkBytes)] = []
        while let length = rest.uint16(at: 0), length >= 4, length <= rest.count, let type = rest.uint16(at: 2) {
            found.append((Int32(type & 0x3FFF), rest.part(from: 4, to: Int(length))))
            rest.removeAligned(Int(length))
        }
        return found
    }
}
