import CLinux
import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Reachability, from the kernel")
struct NetworkReachabilityTests {
    /// A separate network namespace for one test, empty except for what its commands create.
    private final class Network: Sendable {
        let manager: NetworkReachabilityManager
        /// A socket that is notified of every change, and read only by the test.
        let unread: NetlinkSocket
        private let descriptor: Int32

        /// Creates the network on its own thread, the only one that enters the new namespace; the manager's sockets are
        /// created there.
        static func make() async throws -> Network {
            let result: Result<Network, any Error> = await withCheckedContinuation { continuation in
                let work: @Sendable () -> Void = { continuation.resume(returning: Result { try Network() }) }
                do { try startThread(work) } catch { continuation.resume(returning: .failure(error)) }
            }
            return try result.get()
        }

        private init() throws {
            guard linux_unshare_network() == 0 else { throw SystemError("unshare") }
            descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw SystemError("the namespace") }
            unread = try NetlinkSocket(listens: true)
            manager = NetworkReachabilityManager()
            #expect(manager.status == .notReachable)
            for _ in 0..<50 {
                try manager.startListening()
                manager.stopListening()
            }
            try manager.startListening()
        }

        deinit { close(descriptor) }

        @discardableResult
        func run(_ command: String) async throws -> String {
            let process = try ChildProcess(
                ["nsenter", "--net=/proc/\(getpid())/fd/\(descriptor)"]
                    + command.split(separator: " ").map(String.init))
            try #require(try await process.wait() == .exited(0), "\(command): \(process.standardError)")
            return process.standardOutput
        }

        func ip(_ commands: String...) async throws {
            for command in commands { try await run("ip " + command) }
        }
    }

    /// Whether this process may create network namespaces.
    static let canMakeNetworks: Bool = {
        guard geteuid() == 0, let process = try? ChildProcess(["unshare", "--net", "ip", "link", "show", "lo"]) else {
            return false
        }
        defer { process.end() }
        for _ in 0..<1000 {
            if let status = process.poll() { return status == .exited(0) }
            usleep(10_000)
        }
        return false
    }()

    private func next(_ iterator: inout AsyncStream<NetworkReachabilityManager.Change>.Iterator) async
        -> NetworkReachabilityManager.Change?
    {
        await iterator.next(isolation: #isolation)
    }

    @Test("up, changed and down are told as they happen", .enabled(if: canMakeNetworks), .timeLimit(.minutes(2)))
    func changes() async throws {
        let network = try await Network.make()
        #expect(network.manager.status == .notReachable)
        var changes = network.manager.changes.makeAsyncIterator()
        var others = network.manager.changes.makeAsyncIterator()

        // A loopback that is up, links without addresses, and a link-local address cause no event.
        try await network.ip(
            "link set lo up", "link add v0 type veth peer name v1", "link set v0 up", "link set v1 up",
            "addr add 169.254.7.7/16 scope link dev v0")
        try await network.ip("addr add 10.9.0.2/24 dev v0")
        #expect(await next(&changes) == .up)
        #expect(network.manager.status == .reachable)
        try await network.ip("route add default via 10.9.0.1")
        #expect(await next(&changes) == .changed)
        // A further route changes nothing.
        try await network.ip("route add 192.0.2.0/24 via 10.9.0.1", "route change default via 10.9.0.254")
        #expect(await next(&changes) == .changed)
        // The other end goes down: this end loses its carrier.
        try await network.ip("link set v1 down")
        #expect(await next(&changes) == .down)
        #expect(network.manager.status == .notReachable)
        try await network.ip("link set v1 up")
        #expect(await next(&changes) == .up)
        try await network.ip("link del v0")
        #expect(await next(&changes) == .down)

        // A second reader has received the same events.
        for expected in [.up, .changed, .changed, .down, .up, .down] as [NetworkReachabilityManager.Change] {
            #expect(await next(&others) == expected)
        }
        network.manager.stopListening()
        #expect(await next(&changes) == nil)
        #expect(await next(&others) == nil)
    }

    @Test("IPv6 alone is enough", .enabled(if: canMakeNetworks), .timeLimit(.minutes(2)))
    func version6() async throws {
        let network = try await Network.make()
        var changes = network.manager.changes.makeAsyncIterator()
        try await network.ip(
            "link add v0 type veth peer name v1", "link set v0 up", "link set v1 up",
            "addr add 2001:db8::2/64 nodad dev v0")
        #expect(await next(&changes) == .up)
        try await network.ip("addr del 2001:db8::2/64 dev v0")
        #expect(await next(&changes) == .down)
    }

    @Test("more changes than the socket holds are not lost", .enabled(if: canMakeNetworks), .timeLimit(.minutes(2)))
    func overflow() async throws {
        let network = try await Network.make()
        var changes = network.manager.changes.makeAsyncIterator()
        // All commands in one batch, far faster than any reader.
        let place = try TemporaryDirectory()
        var commands = ["link add v0 type veth peer name v1", "link set v0 up", "link set v1 up"]
        for index in 0..<4000 {
            commands.append("addr add 169.254.\(index / 250).\(index % 250 + 1)/32 scope link dev v0")
        }
        commands.append("addr add 10.9.0.2/24 dev v0")
        let batch = try place.write(commands.joined(separator: "\n"), to: "batch")
        try await network.ip("-batch \(batch)")
        #expect(await next(&changes) == .up)
        #expect(network.manager.status == .reachable)

        // An unread socket reports a loss once, and continues.
        var (losses, isEmpty) = (0, false)
        while !isEmpty {
            switch network.unread.receive() {
            case .lost: losses += 1
            case .messages(let messages): #expect(!messages.isEmpty)
            case .nothing: isEmpty = true
            case .failed(let error): throw SystemError("reading netlink", number: error)
            }
        }
        #expect(losses == 1)
    }

    @Test("the manager and its thread end without a trace, and listening may begin again")
    func ending() async throws {
        weak var gone: NetworkReachabilityManager?
        var stream: AsyncStream<NetworkReachabilityManager.Change>?
        do {
            let manager = NetworkReachabilityManager()
            gone = manager
            stream = manager.changes
            do {
                try manager.startListening()
                try manager.startListening()
                manager.stopListening()
                manager.stopListening()
                try manager.startListening()
            } catch {
                // A sandbox may have no netlink.
                #expect(manager.status == .reachable)
            }
            _ = manager.status
        }
        #expect(gone == nil)
        if let stream { for await change in stream { Issue.record("\(change) after the end") } }
    }

    @Test("listeners that come and go leave no socket open", .enabled(if: canMakeNetworks), .timeLimit(.minutes(2)))
    func descriptors() async throws {
        let network = try await Network.make()
        // The kernel's own sockets have no port.
        func sockets() async throws -> Int {
            try await network.run("cat /proc/net/netlink").split(separator: "\n").dropFirst()
                .count { $0.split(separator: " ").dropFirst(2).first != "0" }
        }
        // The socket of the test, and the two of the last listener.
        try await eventually(that: "the others are closed") { try await sockets() == 3 }
        network.manager.stopListening()
        try await eventually(that: "the last two are closed") { try await sockets() == 1 }
    }
}
