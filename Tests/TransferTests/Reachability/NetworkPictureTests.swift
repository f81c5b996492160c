import CLinux
import Glibc
import Testing

@testable import Transfer

@Suite("What of the network leads out")
struct NetworkPictureTests {
    private typealias Writer = NetlinkWriter

    private static let up = IFF_UP | IFF_RUNNING
    private static let global: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]

    private func picture(_ parts: [UInt8]...) -> NetworkPicture {
        var picture = NetworkPicture()
        for message in NetlinkMessage.parse(parts.flatMap { $0 }) { picture.add(message.content) }
        return picture
    }

    private func isReachable(_ parts: [UInt8]...) -> Bool {
        !picture(parts.flatMap { $0 }).paths.isEmpty
    }

    private let link = Writer.link(2, flags: up)
    private let address = Writer.address(2, [10, 0, 0, 2])
    private let route = Writer.route(2, gateway: [10, 0, 0, 1])

    @Test("an interface that runs, an address and a route: all three, in any order")
    func allThree() {
        #expect(isReachable(link, address, route))
        #expect(isReachable(route, address, link))
        #expect(!isReachable())
        #expect(!isReachable(link, address))
        #expect(!isReachable(link, route))
        #expect(!isReachable(address, route))
    }

    @Test("they must be of one interface and one family")
    func together() {
        #expect(!isReachable(Writer.link(3, flags: Self.up), address, route))
        #expect(!isReachable(link, address, Writer.route(3, gateway: [10, 0, 0, 1])))
        #expect(!isReachable(link, address, Writer.route(2, family: AF_INET6)))
        #expect(isReachable(link, Writer.address(2, Self.global), Writer.route(2, family: AF_INET6)))
    }

    @Test("loopback, interfaces that are down, and those without a carrier lead nowhere")
    func links() {
        for flags in [Self.up | IFF_LOOPBACK, IFF_UP, IFF_RUNNING, 0] {
            #expect(!isReachable(Writer.link(2, flags: flags), address, route))
        }
        #expect(isReachable(Writer.link(2, flags: Self.up | IFF_POINTOPOINT), address, route))
    }

    @Test("addresses of the link alone, and those still being probed, are none")
    func addresses() {
        for scope in [253, 254, 255] as [Int32] {
            #expect(!isReachable(link, Writer.address(2, [10, 0, 0, 2], scope: scope), route))
        }
        #expect(isReachable(link, Writer.address(2, [10, 0, 0, 2], scope: 200), route))
        let route = Writer.route(2, family: AF_INET6)
        for (flags, isUsable) in [
            (0x40, false), (0x44, true), (0x08, false), (0x4C, false), (0x80, true), (0x20, true),
        ] {
            #expect(isReachable(link, Writer.address(2, Self.global, flags: UInt32(flags)), route) == isUsable)
        }
    }

    @Test("routes of this machine, of the link and to nowhere do not count, that of the own network does")
    func routes() {
        #expect(isReachable(link, address, Writer.route(2, destination: [10, 0, 0, 0], prefix: 24)))
        #expect(!isReachable(link, address, Writer.route(2, destination: [10, 0, 0, 2], prefix: 32, table: 255)))
        #expect(!isReachable(link, address, Writer.route(2, destination: [169, 254, 0, 0], prefix: 16)))
        #expect(!isReachable(link, address, Writer.route(2, destination: [224, 0, 0, 0], prefix: 4)))
        for type in [2, 3, 5, 6, 7, 8] as [Int32] { #expect(!isReachable(link, address, Writer.route(2, type: type))) }
        for flags in [1, 16, 0x200] as [UInt32] { #expect(!isReachable(link, address, Writer.route(2, flags: flags))) }

        let address = Writer.address(2, Self.global)
        func reaches(_ destination: [UInt8]) -> Bool {
            let whole = destination + Array(repeating: 0, count: 16 - destination.count)
            return isReachable(link, address, Writer.route(2, family: AF_INET6, destination: whole, prefix: 64))
        }
        #expect(!reaches([0xFE, 0x80]) && !reaches([0xFE, 0xBF]) && !reaches([0xFF, 0x02]))
        #expect(reaches([0xFE, 0xC0]) && reaches([0xFD]) && reaches([0x20, 0x01]))
    }

    @Test("pictures differ by usable addresses and gateways alone")
    func differences() {
        let usual = picture(link, address, route)
        #expect(usual == picture(route, link, Writer.link(5, flags: IFF_UP), address))
        // A further route, and a link-local address.
        #expect(usual == picture(link, address, route, Writer.route(2, destination: [192, 168, 0, 0], prefix: 16)))
        #expect(usual == picture(link, address, route, Writer.address(2, [169, 254, 1, 1], scope: 253)))
        #expect(usual != picture(link, address, Writer.route(2, gateway: [10, 0, 0, 254])))
        #expect(usual != picture(link, Writer.address(2, [10, 0, 0, 3]), route))
        #expect(usual != picture(link, address, Writer.address(2, [10, 0, 0, 3]), route))
        #expect(usual != picture())
    }
}
