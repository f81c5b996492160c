import CLinux
import Glibc

/// A snapshot of the network state that determines reachability, collected from the kernel's dumps.
///
/// The network is reachable if an interface other than the loopback is up and running, has a usable address of global
/// or site scope, and is used by a route of the same family. That route is the default route or another one that is
/// neither in the table `local` nor link-local. A server in the local network therefore counts. A bridge to containers
/// counts too, which is wrong but harmless: a transfer then fails and is retried, whereas a false "not reachable" would
/// block a transfer that could run.
struct NetworkPicture: Equatable {
    /// The maximum number of addresses. A machine with more is reachable by these.
    static let maximumAddresses = 65_536
    /// The maximum number of default routes stored to detect changes.
    static let maximumDefaultRoutes = 1024

    /// An interface with one of its addresses.
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

    /// The usable addresses of interfaces that have a route. The network is reachable if there is at least one.
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

    /// Returns whether both have the same paths and the same default gateways.
    static func == (left: NetworkPicture, right: NetworkPicture) -> Bool {
        left.paths == right.paths && left.usedDefaultRoutes == right.usedDefaultRoutes
    }

    private var usedDefaultRoutes: Set<DefaultRoute> { defaultRoutes.filter { running.contains($0.outlet.index) } }
}

extension NetworkAddress {
    /// Whether the scope exceeds the link and duplicate address detection has not failed or is not pending.
    fileprivate var isUsable: Bool {
        guard scope == UInt8(LINUX_RT_SCOPE_UNIVERSE) || scope == UInt8(LINUX_RT_SCOPE_SITE) else { return false }
        guard flags & LINUX_IFA_F_DADFAILED == 0 else { return false }
        return flags & LINUX_IFA_F_TENTATIVE == 0 || flags & LINUX_IFA_F_OPTIMISTIC != 0
    }
}

extension NetworkRoute {
    /// Whether the route leads to other machines and is not link-local. Every interface has link-local routes.
    fileprivate var leadsOut: Bool {
        guard type == UInt8(LINUX_RTN_UNICAST), table != LINUX_RT_TABLE_LOCAL,
            flags & (LINUX_RTNH_F_DEAD | LINUX_RTNH_F_LINKDOWN | LINUX_RTM_F_CLONED) == 0
        else { return false }
        switch (Int32(family), destination.first, destination.dropFirst().first) {
        // Multicast (ff00::/8) and link-local (fe80::/10) destinations.
        case (AF_INET6, 0xFF, _): return false
        case (AF_INET6, 0xFE, let second?): return second & 0xC0 != 0x80
        // Link-local (169.254.0.0/16) and multicast (224.0.0.0/4) destinations.
        case (AF_INET, 169, 254): return false
        case (AF_INET, let first?, _): return !(224...239).contains(first)
        default: return true
        }
    }
}
