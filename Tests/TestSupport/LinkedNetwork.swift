import Glibc

/// A network namespace for a program (network_namespaces(7)) with a link to one port of this machine. The link can be
/// taken down and can change its address. Requires root and ip(8).
package final class LinkedNetwork: Sendable {
    private let name: String
    private let number: Int
    private let listener: Int32
    /// The port number, which is the same on 127.0.0.1 and on the link.
    package let port: Int

    private static let program = "/usr/sbin/ip"

    /// Returns whether this process may create a network namespace.
    package static func isPossible() async -> Bool {
        guard geteuid() == 0, access(program, X_OK) == 0 else { return false }
        let name = "dld-try-\(getpid())"
        guard let made = try? await run([program, "netns", "add", name]), made.succeeded else { return false }
        return (try? await run([program, "netns", "del", name]))?.succeeded == true
    }

    /// Creates the namespace and the link.
    ///
    /// - Parameter port: the port on 127.0.0.1 to which connections are relayed.
    package init(to port: Int) async throws {
        number = Int.random(in: 0..<31)
        name = "dld-\(getpid())-\(port)"
        self.port = port
        let (outside, inside) = ("dldo\(port)", "dldi\(port)")
        try await Self.ip(["netns", "add", name])
        do {
            try await Self.ip(["link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name])
            // The eight addresses are from the block for network benchmarks (RFC 2544).
            try await Self.ip(["addr", "add", "198.18.77.\(number * 8 + 1)/29", "dev", outside])
            try await Self.ip(["link", "set", outside, "up"])
            listener = try Self.listen(on: UInt32(198) << 24 | 18 << 16 | 77 << 8 | UInt32(number * 8 + 1), port)
        } catch {
            _ = try? await run([Self.program, "netns", "del", name])
            throw error
        }
        try startThread { [listener] in
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                try? startThread { try? StreamSocket(adopting: connection).relay(to: port) }
            }
        }
        try await setAddress(2)
        try await setLink(up: true)
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        let arguments = [Self.program, "netns", "del", name]
        // The link is deleted together with the namespace.
        if let child = try? ChildProcess(arguments) { while child.poll() == nil { usleep(5_000) } }
    }

    /// A command that runs another command inside the namespace.
    package var prefix: [String] { [Self.program, "netns", "exec", name] }

    package func url(_ path: String) -> String { "http://198.18.77.\(number * 8 + 1):\(port)\(path)" }

    private var inside: [String] { ["-n", name] }

    package func setLink(up: Bool) async throws {
        try await Self.ip(inside + ["link", "set", "dldi\(port)", up ? "up" : "down"])
    }

    /// - Parameter last: the host number within the link's network, from 2 to 6.
    package func setAddress(_ last: Int) async throws {
        try await Self.ip(inside + ["addr", "flush", "dev", "dldi\(port)"])
        try await Self.ip(inside + ["addr", "add", "198.18.77.\(number * 8 + last)/29", "dev", "dldi\(port)"])
    }

    private static func ip(_ arguments: [String]) async throws {
        let outcome = try await run([program] + arguments)
        guard outcome.succeeded else { throw Unusable(reason: "ip \(arguments): \(outcome.error)") }
    }

    private static func listen(on address: UInt32, _ port: Int) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = in_port_t(port).bigEndian
        place.sin_addr.s_addr = address.bigEndian
        let bound = withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, Glibc.listen(descriptor, 64) == 0 else {
            let error = SystemError("listening on 198.18.77.0/24")
            close(descriptor)
            throw error
        }
        return descriptor
    }
}
