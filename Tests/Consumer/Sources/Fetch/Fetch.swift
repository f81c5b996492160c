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
        manager.intercept(with: DefaultRetrier(policy: RetryPolicy(attempts: 4)))
        let release = try await manager.request(CommandLine.arguments[1]).validate().decoded(as: Release.self)

        let directory = try Directory.open(root: CommandLine.arguments[2], makesRoot: true)
        let digest = FileDigest(algorithm: .sha256, hex: release.sha256)
        let target = DownloadTarget(directory: directory, partName: ".\(release.file).part", owner: release.file) { _ in
            FileDestination(name: release.file, conflict: .overwrite, digest: digest)
        }
        let note = URL(filePath: directory.path(of: ".\(release.file).resume"))
        let resumeData = (try? Data(contentsOf: note)).flatMap { ResumeData(bytes: Array($0)) }
        let download = manager.download(release.url, to: target, resumingWith: resumeData)
            .validate(contentType: ["application/octet-stream"])
            .onProgress { progress in
                let percent = (progress.fractionCompleted ?? 0) * 100
                FileHandle.standardError.write(Data("\r\(Int(percent)) % ".utf8))
            }

        _ = signal(SIGINT, SIG_IGN)  // the dispatch source below handles it
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
        interrupt.setEventHandler { download.cancel() }
        interrupt.resume()

        let response = await download.outcome
        switch response.result {
        case .success(let file):
            try? FileManager.default.removeItem(at: note)
            print("\(release.file): \(file.size) bytes, verified: \(file.isVerified)")
        case .failure(let error):
            if let rest = response.resumeData { try Data(rest.bytes).write(to: note) }
            print("\(error); the next run goes on where this one stopped")
            exit(1)
        }
    }
}
