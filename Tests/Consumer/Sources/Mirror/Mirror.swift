import Foundation
import Synchronization
import Transfer

/// Mirrors the files of an index, which has a line for each, as `sha256sum` prints it: `Mirror INDEX-URL DIRECTORY`.
/// Another run continues, however the last one ended.
@main
struct Mirror {
    private static let done = Atomic(0)

    static func main() async throws {
        guard CommandLine.arguments.count == 3, let index = URL(string: CommandLine.arguments[1]) else {
            return print("usage: Mirror INDEX-URL DIRECTORY")
        }
        var configuration = SessionConfiguration.default
        configuration.checkpointInterval = 1 << 20
        let manager = try SessionManager(configuration: configuration)
        manager.retrier = DefaultRetrier()
        let lines = try await manager.request(index.absoluteString).validate().string.split(separator: "\n")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, line) in lines.enumerated() {
                if number >= 8 { try await group.next() }
                group.addTask {
                    try await mirror(String(line.dropFirst(66)), .sha256(String(line.prefix(64))), index, manager)
                    let count = done.wrappingAdd(1, ordering: .relaxed).newValue
                    FileHandle.standardError.write(Data("\r\(count) of \(lines.count) files".utf8))
                }
            }
            try await group.waitForAll()
        }
        print("\(lines.count) files, each as its digest says")
    }

    static func mirror(_ path: String, _ digest: FileDigest, _ index: URL, _ manager: SessionManager) async throws {
        let url = index.deletingLastPathComponent().appending(path: path)
        let (folder, name) = ((path as NSString).deletingLastPathComponent, url.lastPathComponent)
        let directory = try Directory.open(root: CommandLine.arguments[2], subdirectory: folder, makesRoot: true)
        let target = DownloadTarget(directory: directory, partName: ".\(name).part", owner: name) { _ in
            FileDestination(name: name, conflict: .overwrite, digest: digest)
        }
        let file = ResumeDataFile(path: directory.path + "/.\(name).resume")
        if FileManager.default.fileExists(atPath: directory.path + "/" + name) { return try file.remove() }
        _ = try await manager.download(url.absoluteString, to: target, resumingWith: file.load())
            .keepResumeData(in: file)
            .onProgress { if $0.completedBytes > 4 << 20 { print(name, $0.completedBytes, "of", $0.totalBytes ?? 0) } }
            .value
    }
}
