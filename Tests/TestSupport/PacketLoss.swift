import Glibc

/// A line that loses packets: one in so many of those from and to a port on loopback, and with each the order of those
/// behind it (nft(8)).
package final class PacketLoss: Sendable {
    private let table: String
    private static let program = "/usr/sbin/nft"

    /// Whether this process may have packets dropped.
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

    /// The line loses nothing any more.
    package func end() async throws {
        _ = try await run([Self.program, "delete table inet \(table)"])
    }
}
