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

        let directory = try Directory.open(root: CommandLine.arguments[2], makesRoot: true)
        let digest = FileDigest(algorithm: .sha256, hex: release.sha256)
        let target = DownloadTarget(directory: directory, partName: ".\(release.file).part", owner: release.file) { _ in
            FileDestination(name: release.file, conflict: .overwrite, digest: digest)
        }
        let file = try await manager.download(release.url, to: target).value
        print("\(release.file): \(file.size) bytes, verified: \(file.isVerified)")
    }
}
