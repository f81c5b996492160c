import Dispatch
import Foundation
import Transfer

/// The server's description of its newest release.
struct Release: Decodable, Sendable {
    var file: String
    var url: String
    var sha256: String
}

@main
enum Fetch {
    static func main() async throws {
        guard CommandLine.arguments.count == 3 else { exit(64) }
        let manager = try SessionManager()
        let release = try await manager.request(CommandLine.arguments[1]).validate().decoded(as: Release.self)
        print("\(release.file) is at \(release.url)")
    }
}
