import FoundationEssentials
import TaskModel
import Testing

@testable import TaskFiles

@Suite("The examples")
struct ExampleFilesTests {
    private func text(of name: String) throws -> String {
        let config = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "config")
        return try FileText.decode(Data(contentsOf: config.appending(path: name)), file: name)
    }

    @Test("the example configuration says the defaults, but for the network policy and the queue files")
    func configuration() throws {
        var found = try Configuration(parsing: text(of: "dld.yaml"), file: "dld.yaml")
        let defaults = Configuration()
        #expect(
            found.network.exempt == .administrators && found.queues == [QueuePattern(path: "/etc/dld/queue.d/*.yaml")])
        // Loopback, unspecified and link-local addresses, and metadata services: nothing that a neighbour has.
        for network: NetworkRange in [
            .ipv4(0x7F00_0000, prefixLength: 8), .ipv6(1, prefixLength: 128), .ipv4(0, prefixLength: 8),
            .ipv6(0, prefixLength: 128), .ipv4(0xA9FE_0000, prefixLength: 16),
            .ipv6(0xFE80 << 112, prefixLength: 10),
        ] {
            #expect(found.network.deny.contains(network), "\(network)")
        }
        for network in found.network.deny {
            guard case .ipv4(let address, _) = network else { continue }
            #expect(![10, 172, 192 << 8 | 168].contains(address >> 24) && address >> 16 != 0xC0A8, "\(network)")
        }
        found.network.deny = defaults.network.deny
        found.network.exempt = defaults.network.exempt
        found.queues = defaults.queues
        #expect(found == defaults)
    }

    @Test("the example configuration holds every key, and is right with all of them in use")
    func everyKey() throws {
        let lines = try text(of: "dld.yaml").split(separator: "\n", omittingEmptySubsequences: false).map { line in
            if line.hasPrefix("  # - ") { return "  " + line.dropFirst(4) }
            guard line.hasPrefix("  # "), let word = line.dropFirst(4).split(separator: " ").first,
                word.hasSuffix(":"),
                word.utf8.dropLast().allSatisfy({ $0.isLetterOrDigit || "-.*'".utf8.contains($0) }),
                word.first?.isLowercase == true || word.hasPrefix("'")
            else { return String(line) }
            return "  " + line.dropFirst(4)
        }
        typealias Keys = ConfigurationKeys
        let sections = [
            ("downloads", KeyTable(Keys.Downloads.self)), ("uploads", KeyTable(Keys.Uploads.self)),
            ("limits", KeyTable(Keys.Limits.self)), ("retry", KeyTable(Keys.Retry.self)),
            ("timeouts", KeyTable(Keys.Timeouts.self)), ("disk", KeyTable(Keys.Disk.self)),
            ("tls", KeyTable(Keys.TLS.self)), ("network", KeyTable(Keys.Network.self)),
            ("hosts", KeyTable(Keys.Host.self)), ("schedule", KeyTable(Keys.Window.self)), ("queues", KeyTable([])),
            ("watch", KeyTable(Keys.Watch.self)), ("history", KeyTable(Keys.Kept.self)),
            ("events", KeyTable(Keys.Kept.self)), ("notify", KeyTable(Keys.Webhook.self)),
            ("control", KeyTable(Keys.Control.self)), ("metrics", KeyTable(Keys.Metrics.self)),
            ("log", KeyTable(Keys.Log.self)),
        ]
        #expect(sections.map(\.0) == Keys.Top.allCases.map(\.rawValue))
        for (name, keys) in sections {
            let start = try #require(lines.firstIndex(of: name + ":"), "\(name)")
            let section = lines[(start + 1)...].prefix { $0.isEmpty || $0.hasPrefix(" ") }
            for key in keys.known {
                let isThere = section.contains { line in
                    // Keys of a host are beneath its name, keys of a list within its entries.
                    ["hosts", "schedule", "watch", "notify"].contains(name)
                        ? line.contains("\(key): ") : line.hasPrefix("  \(key):")
                }
                #expect(isThere, "\(name).\(key)")
            }
        }
        let full = try Configuration(
            parsing: lines.joined(separator: "\n"), file: "/etc/dld/dld.yaml", readFile: reading(["/etc/dld/key": "k"]))
        #expect(full.downloads.directory == "/srv/downloads")
        #expect(full.control.adminGroup == "adm")
        #expect(full.schedule.windows.count == 2 && full.queues.map(\.prune) == [false, true])
        #expect(full.watch.map(\.directory) == ["/srv/drop"])
        #expect(full.notify.map(\.secret) == ["k"])
        let files = full.hosts["files.example.org"]
        #expect(files?.access.credential == "files" && files?.access.owners == [.user("root"), .group("staff")])
        #expect(full.hosts["pinned.example.org"]?.trust?.pins.count == 1)
        #expect(full.hosts["mirror.example.org"]?.httpVersion == .http2)
    }

    @Test("the example queue file is right")
    func queueFile() throws {
        let file = try QueueFile(
            parsing: text(of: "queue.example.yaml"), file: "queue.example.yaml", baseDirectory: "/base",
            now: 1_704_067_200_000, utcOffset: { _ in 0 }, readFile: reading([:]))
        #expect(file.batch == "nightly")
        #expect(file.entries.count == 9)
        #expect(file.entries.map(\.specification.priority) == [.low, .low, .low, .low, .low, .low, .high, .low, .low])
        #expect(file.entries.map(\.specification.mirrors.count) == [0, 2, 0, 0, 0, 0, 0, 0, 0])
        #expect(file.entries.filter(\.specification.update).map(\.specification.expectedName) == ["latest.iso"])
        #expect(
            file.entries.suffix(3).map(\.specification.file)
                == ["/base/report.tar", "/base/log.txt", "/base/photo.jpg"])
        #expect(file.entries.last?.specification.form == ["title=Sea", "token=TOKEN"])
    }
}
