import CLinux
import Glibc

/// What of the network there is to go out by, collected from the kernel's answers.
///
/// The rule: the network is reachable where some interface that is no loopback is up and running, has an address of
/// global or site scope that may be used, and some route of the same family leads over it: the default route or another
/// that is neither this machine's own (table `local`) nor confined to the link. So a server in the own network counts,
/// and so does, wrongly, a bridge to containers: held to be reachable, a transfer fails and is tried again, while held
/// to be unreachable it would wait though it could run.
struct NetworkPicture: Equatable {
    /// Addresses that are remembered; a machine with more is reachable by those.
    static let maximumAddresses = 65_536
    /// Default routes that are remembered, to notice when they change.
    static let maximumDefaultRoutes = 1024

    /// Way and address together.
    struct Path: Hashable {
        var index: Int32
        var family: UInt8
        var address: [UInt8]
    }

    private struct Outlet: Hashable {
        var index: Int32
        var family: UInt8
    }

    private struct DefaultRoute: Hashable {
        var outlet: Outlet
        var gateway: [UInt8]
    }

    private var running: Set<Int32> = []
    private var addresses: Set<Path> = []
    private var outlets: Set<Outlet> = []
    private var defaultRoutes: Set<DefaultRoute> = []

    /// Ways out with the address that each has: the network is reachable where there is one.
    var paths: Set<Path> {
        addresses.filter { running.contains($0.index) && outlets.contains(Outlet(index: $0.index, family: $0.family)) }
    }

    mutating func add(_ content: NetlinkMessage.Content) {
        switch content {
        case .link(let link):
            let wanted = UInt32(IFF_UP | IFF_RUNNING)
            if link.flags & wanted == wanted, link.flags & UInt32(IFF_LOOPBACK) == 0 {
                running.insert(link.index)
            }
        case .address(let address):
            guard address.isUsable, addresses.count < Self.maximumAddresses else { return }
            addresses.insert(Path(index: address.index, family: address.family, address: address.bytes))
        case .route(let route):
            guard route.leadsOut else { return }
            for hop in route.hops {
                let outlet = Outlet(index: hop.index, family: route.family)
                outlets.insert(outlet)
                if route.prefixLength == 0, defaultRoutes.count < Self.maximumDefaultRoutes {
                    defaultRoutes.insert(DefaultRoute(outlet: outlet, gateway: hop.gateway))
                }
            }
        case .gone, .done, .failed, .other: break
        }
    }

    /// The same ways out, over the same gateways.
    static func == (left: NetworkPicture, right: NetworkPicture) -> Bool {
        left.paths == right.paths && left.usedDefaultRoutes == right.usedDefaultRoutes
    }

    private var usedDefaultRoutes: Set<DefaultRoute> { defaultRoutes.filter { running.contains($0.outlet.index) } }
}

extension NetworkAddress {
    /// Of a scope beyond the link, and not still being probed for another machine that has it.
    fileprivate var isUsable: Bool {
        guard scope == UInt8(LINUX_RT_SCOPE_UNIVERSE) || scope == UInt8(LINUX_RT_SCOPE_SITE) else { return false }
        guard flags & LINUX_IFA_F_DADFAILED == 0 else { return false }
        return flags & LINUX_IFA_F_TENTATIVE == 0 || flags & LINUX_IFA_F_OPTIMISTIC != 0
    }
}

extension NetworkRoute {
    /// To other machines, and not to those of one link alone, whose routes every interface has.
    fileprivate var leadsOut: Bool {
        guard type == UInt8(LINUX_RTN_UNICAST), table != LINUX_RT_TABLE_LOCAL,
            flags & (LINUX_RTNH_F_DEAD | LINUX_RTNH_F_LINKDOWN | LINUX_RTM_F_CLONED) == 0
        else { return false }
        switch (Int32(family), destination.first, destination.dropFirst().first) {
        // ff00::/8 and fe80::/10
        case (AF_INET6, 0xFF, _): return false
        case (AF_INET6, 0xFE, let second?): return second & 0xC0 != 0x80
        // 169.254.0.0/16 and 224.0.0.0/4
        case (AF_INET, 169, 254): return false
        case (AF_INET, let first?, _): return !(224...239).contains(first)
        default: return true
        }
    }
}
