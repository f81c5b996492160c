import Glibc

/// Packet loss on a loopback port: one in `count` packets from and to the port is dropped, which also disturbs the
/// order of the packets behind it (nft(8)).
package final class PacketLoss: Sendable {
    private let table: String
    private static let program = "/usr/sbin/nft"

    /// Returns whether this process may use nft(8).
    package static func isPossible() async -> Bool {
        guard access(program, X_OK) == 0, let outcome = try? await run([program, "list", "tables"]) else {
            return false
        }
        return outcome.succeeded
    }

    package init(atPort port: Int, oneIn count: Int) async throws {
        table = "dld_\(getpid())_\(port)"
        let rules = ["sport", "dport"].map { "tcp \($0) \(port) numgen random mod \(count) 0 drop;" }
        let chain = "chain input { type filter hook input priority 0; \(rules.joined(separator: " ")) }"
        let outcome = try await run([Self.program, "table inet \(table) { \(chain); }"])
        guard outcome.succeeded else { throw Unusable(reason: "nft: \(outcome.error)") }
    }

    /// Ends the packet loss.
    package func end() async throws {
        _ = try await run([Self.program, "delete table inet \(table)"])
    }
}
