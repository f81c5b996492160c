import CLinux
import Glibc
import Testing

@testable import Transfer

/// Netlink messages in the kernel's format.
enum NetlinkWriter {
    static func bytes(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + Array(repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    static func message(_ type: Int32, flags: UInt16 = 0, sequence: UInt32 = 7, _ body: [UInt8]) -> [UInt8] {
        let port = UInt32(0)
        let header = bytes(UInt32(16 + body.count)) + bytes(UInt16(type)) + bytes(flags) + bytes(sequence) + bytes(port)
        return padded(header + body)
    }

    static func attribute(_ type: Int32, _ value: [UInt8]) -> [UInt8] {
        padded(bytes(UInt16(4 + value.count)) + bytes(UInt16(type)) + value)
    }

    static func link(_ index: Int32, flags: Int) -> [UInt8] {
        message(LINUX_RTM_NEWLINK, [0, 0, 1, 0] + bytes(index) + bytes(UInt32(flags)) + bytes(UInt32(0)))
    }

    static func address(
        _ index: Int32, _ value: [UInt8], scope: Int32 = LINUX_RT_SCOPE_UNIVERSE, flags: UInt32 = 0
    ) -> [UInt8] {
        let family = value.count == 4 ? AF_INET : AF_INET6
        return message(
            LINUX_RTM_NEWADDR,
            [UInt8(family), 24, 0, UInt8(scope)] + bytes(index) + attribute(LINUX_IFA_ADDRESS, value)
                + attribute(LINUX_IFA_FLAGS, bytes(flags)))
    }

    static func route(
        _ index: Int32, family: Int32 = AF_INET, destination: [UInt8] = [], prefix: UInt8 = 0, table: UInt8 = 254,
        type: Int32 = LINUX_RTN_UNICAST, flags: UInt32 = 0, gateway: [UInt8] = [], more: [UInt8] = []
    ) -> [UInt8] {
        message(
            LINUX_RTM_NEWROUTE,
            [UInt8(family), prefix, 0, 0, table, 0, 0, UInt8(type)] + bytes(flags)
                + (destination.isEmpty ? [] : attribute(LINUX_RTA_DST, destination))
                + (index == 0 ? [] : attribute(LINUX_RTA_OIF, bytes(index)))
                + (gateway.isEmpty ? [] : attribute(LINUX_RTA_GATEWAY, gateway)) + more)
    }

    static func hop(_ index: Int32, flags: UInt8 = 0, gateway: [UInt8]) -> [UInt8] {
        let rest = attribute(LINUX_RTA_GATEWAY, gateway)
        return bytes(UInt16(8 + rest.count)) + [flags, 0] + bytes(index) + rest
    }
}

@Suite("Messages of rtnetlink")
struct NetlinkMessageTests {
    private typealias Writer = NetlinkWriter

    @Test("links, addresses and routes arrive with all that matters of them")
    func contents() {
        let datagram =
            Writer.link(3, flags: IFF_UP | IFF_RUNNING) + Writer.address(3, [10, 0, 0, 2], flags: 0x80)
            + Writer.route(3, destination: [10, 1, 0, 0], prefix: 16, gateway: [10, 0, 0, 1])
        let contents = NetlinkMessage.parse(datagram).map(\.content)
        #expect(
            contents == [
                .link(NetworkLink(index: 3, flags: UInt32(IFF_UP | IFF_RUNNING))),
                .address(
                    NetworkAddress(
                        index: 3, family: UInt8(AF_INET), prefixLength: 24, scope: 0, flags: 0x80, bytes: [10, 0, 0, 2])
                ),
                .route(
                    NetworkRoute(
                        family: UInt8(AF_INET), prefixLength: 16, table: 254, type: 1, flags: 0,
                        destination: [10, 1, 0, 0], hops: [.init(index: 3, gateway: [10, 0, 0, 1])])),
            ])
    }

    @Test("on a line between two, the address is this machine's end")
    func pointToPoint() {
        for attributes in [
            [(LINUX_IFA_ADDRESS, [10, 0, 0, 1]), (LINUX_IFA_LOCAL, [10, 0, 0, 2])],
            [(LINUX_IFA_LOCAL, [10, 0, 0, 2]), (LINUX_IFA_ADDRESS, [10, 0, 0, 1])],
        ] as [[(Int32, [UInt8])]] {
            let body = [UInt8(AF_INET), 32, 0, 0] + Writer.bytes(Int32(1))
            let message = Writer.message(
                LINUX_RTM_NEWADDR, body + attributes.flatMap { Writer.attribute($0.0, $0.1) })
            guard case .address(let address)? = NetlinkMessage.parse(message).first?.content else {
                Issue.record("no address")
                continue
            }
            #expect(address.bytes == [10, 0, 0, 2])
        }
    }

    @Test("a route with several hops has them all but the dead, and its table may stand outside the head")
    func hops() {
        let hops =
            Writer.hop(1, gateway: [10, 0, 0, 1]) + Writer.hop(2, flags: 1, gateway: [10, 0, 0, 2])
            + Writer.hop(3, flags: 16, gateway: [10, 0, 0, 3]) + Writer.hop(4, gateway: [10, 0, 0, 4])
        let more =
            Writer.attribute(LINUX_RTA_MULTIPATH, hops) + Writer.attribute(LINUX_RTA_TABLE, Writer.bytes(UInt32(1000)))
        guard case .route(let route)? = NetlinkMessage.parse(Writer.route(0, more: more)).first?.content else {
            Issue.record("no route")
            return
        }
        #expect(route.hops.map(\.index) == [1, 4])
        #expect(route.hops.map(\.gateway) == [[10, 0, 0, 1], [10, 0, 0, 4]])
        #expect(route.table == 1000)
        let many = Writer.attribute(
            LINUX_RTA_MULTIPATH,
            Array(repeating: Writer.bytes(UInt16(8)) + [0, 0] + Writer.bytes(Int32(1)), count: 1000).flatMap { $0 })
        if case .route(let route)? = NetlinkMessage.parse(Writer.route(0, more: many)).first?.content {
            #expect(route.hops.count == NetlinkMessage.maximumHops)
        }
    }

    @Test("the end, a failure, an interruption and what is gone are told")
    func control() {
        let messages = NetlinkMessage.parse(
            Writer.message(LINUX_NLMSG_DONE, flags: UInt16(LINUX_NLM_F_DUMP_INTR), sequence: 9, Writer.bytes(Int32(0)))
                + Writer.message(LINUX_NLMSG_ERROR, Writer.bytes(-EPERM)) + Writer.message(LINUX_NLMSG_ERROR, [])
                + Writer.message(LINUX_NLMSG_ERROR, Writer.bytes(Int32.min))
                + Writer.message(LINUX_RTM_DELADDR, []) + Writer.message(LINUX_NLMSG_OVERRUN, [])
                + Writer.message(999, [1, 2, 3]))
        #expect(messages.map(\.content) == [.done, .failed(EPERM), .failed(0), .failed(0), .gone, .gone, .other])
        #expect(messages.first?.isInterrupted == true)
        #expect(messages.first?.sequence == 9)
        #expect(messages.last?.isInterrupted == false)
    }

    @Test("a datagram cut anywhere yields what is whole of it, and harms nothing")
    func truncated() {
        let whole =
            Writer.link(3, flags: IFF_UP) + Writer.address(3, [10, 0, 0, 2])
            + Writer.route(0, more: Writer.attribute(LINUX_RTA_MULTIPATH, Writer.hop(1, gateway: [1, 2, 3, 4])))
        let all = NetlinkMessage.parse(whole)
        #expect(all.count == 3)
        for end in whole.indices {
            let some = NetlinkMessage.parse(Array(whole[..<end]))
            #expect(some == Array(all.prefix(some.count)))
            #expect(some.count < all.count)
        }
    }

    @Test("lengths that lie lead nowhere: neither out of bounds nor round in circles")
    func lyingLengths() {
        let datagram =
            Writer.link(3, flags: IFF_UP) + Writer.address(3, [10, 0, 0, 2])
            + Writer.route(4, more: Writer.attribute(LINUX_RTA_MULTIPATH, Writer.hop(1, gateway: [1, 2, 3, 4])))
        for index in datagram.indices {
            for value in [0, 1, 3, 4, 8, 15, 16, 17, 0x7F, 0x80, 0xFF] as [UInt8] {
                var harmed = datagram
                harmed[index] = value
                var picture = NetworkPicture()
                for message in NetlinkMessage.parse(harmed) { picture.add(message.content) }
                _ = picture.paths
            }
        }
        #expect(NetlinkMessage.parse(Array(repeating: 0, count: 4096)).isEmpty)
        #expect(NetlinkMessage.parse(Array(repeating: 0xFF, count: 4096)).isEmpty)
        #expect(NetlinkMessage.parse([]).isEmpty)
    }

    @Test("messages without their bodies are of no matter")
    func short() {
        for type in [LINUX_RTM_NEWLINK, LINUX_RTM_NEWADDR, LINUX_RTM_NEWROUTE] {
            for count in 0..<8 {
                let message = Writer.message(type, Array(repeating: 0, count: count))
                #expect(NetlinkMessage.parse(message).map(\.content) == [.other])
            }
        }
    }
}
