import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The metrics of a running daemon.
@Suite("Metrics", .serialized, .timeLimit(.minutes(3)))
struct MetricsTests {
    private static let textfile = "metrics: {textfile: '@DIR@/dld.prom'}\n"

    /// Returns the series of a text file by name with labels.
    private func series(at path: String) throws -> [String: Double] {
        let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        try #require(text.hasSuffix("# EOF\n"), "\(text.suffix(200))")
        var found: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let space = try #require(line.lastIndex(of: " "))
            found[String(line[..<space])] = Double(line[line.index(after: space)...])
        }
        return found
    }

    private func inode(of path: String) throws -> ino_t {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return status.st_ino
    }

    @Test("a download, an upload and a failure are in the status and in the file, which says that the daemon has ended")
    func values() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer([
            "/a": [.serve(resource)], "/gone": [.status(404)], "/up": [.status(201)],
        ])
        let daemon = try await DaemonProcess.started(quickRetries + Self.textfile)
        let file = daemon.directory.file("dld.prom")
        try await eventually(that: "the file is there") { access(file, R_OK) == 0 }
        #expect(try series(at: file)["dld_up"] == 1)
        let source = try daemon.directory.write(String(repeating: "x", count: 5_000), to: "source")
        for id in [
            try await daemon.add(server.url("/a")), try await daemon.add(server.url("/gone")),
            try await daemon.upload(source, server.url("/up")),
        ] {
            _ = try await daemon.settled(id)
        }
        let expected: [String: Double] = [
            #"dld_tasks{kind="download",state="completed"}"#: 1, #"dld_tasks{kind="download",state="failed"}"#: 1,
            #"dld_tasks{kind="upload",state="completed"}"#: 1, #"dld_tasks{kind="download",state="active"}"#: 0,
            "dld_downloaded_bytes_total": 300_000, "dld_uploaded_bytes_total": 5_000,
            #"dld_attempts_total{kind="download"}"#: 2, #"dld_attempts_total{kind="upload"}"#: 1,
            #"dld_failures_total{class="http_4xx"}"#: 1, #"dld_failures_total{class="dns"}"#: 0,
            "dld_hosts_on_hold": 0, "dld_subscribers_dropped_total": 0,
        ]
        let outcome = try await daemon.dlctl("status", "--json")
        let status = try JSONDecoder().decode(DaemonStatus.self, from: Data(outcome.output.utf8))
        let metrics = try #require(status.metrics)
        for (name, value) in expected { #expect(metrics.values[name] == value, "\(name)") }
        #expect((metrics.values["dld_wal_bytes"] ?? 0) > 0 && metrics.values["dld_connections"] == 1)
        #expect(metrics.histograms["dld_queue_wait_seconds"]?.count == 3)
        #expect((metrics.histograms["dld_time_to_first_byte_seconds"]?.count ?? 0) >= 2)
        let commits = try #require(metrics.histograms["dld_commit_seconds"])
        #expect(commits.count > 3 && commits.sum > 0 && commits.buckets.last?.count ?? 0 > 0)
        // Whoever does not ask is not given them.
        let plain: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
        #expect(plain.metrics == nil)
        try await daemon.terminate()
        let last = try series(at: file)
        for (name, value) in expected { #expect(last[name] == value, "\(name)") }
        #expect((last["dld_metrics_time_seconds"] ?? 0) > (last["dld_start_time_seconds"] ?? .infinity))
        #expect(last["dld_up"] == 0 && last["dld_queue_wait_seconds_count"] == 3)
        #expect(last.keys.contains { $0.hasPrefix("dld_build_info{libcurl=\"") })
        #expect(!last.keys.contains { $0.contains("127.0.0.1") || $0.contains("://") })
        #expect(TemporaryDirectory.names(in: daemon.directory.path).filter { $0.hasSuffix(".tmp") } == [])
    }

    @Test("while a download runs, its bytes, rate and syncs are counted, and the lag of the event loops is measured")
    func running() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 32 * mebibyte))]])
        let daemon = try await DaemonProcess.started(quickRetries + "limits: {download-rate: 1M}\n")
        let id = try await daemon.add(server.url("/a"))
        let metrics = try await eventually(have: "all of it") { () -> DaemonStatus.Metrics? in
            let status: DaemonStatus = try daemon.call(.daemonStatus, DaemonStatusParameters(metrics: true))
            guard let metrics = status.metrics, metrics.histograms["dld_sync_seconds"]?.count ?? 0 > 0,
                metrics.histograms["dld_loop_lag_seconds"]?.count ?? 0 > 0
            else { return nil }
            return metrics
        }
        #expect(try daemon.task(id).state == .active)
        #expect(metrics.values[#"dld_tasks{kind="download",state="active"}"#] == 1)
        #expect(metrics.values[#"dld_tasks{kind="download",state="queued"}"#] == 0)
        #expect(metrics.values["dld_downloaded_bytes_total"] ?? 0 > 0)
        #expect(metrics.values["dld_download_rate_bytes_per_second"] ?? 0 > 0)
        #expect(metrics.values[#"dld_attempts_total{kind="download"}"#] == 0)
    }

    @Test("an idle daemon leaves the file alone; a reload moves it")
    func idle() async throws {
        let daemon = try await DaemonProcess.started(quickRetries + Self.textfile)
        let file = daemon.directory.file("dld.prom")
        try await eventually(that: "the file is there") { access(file, R_OK) == 0 }
        // The start may have changed the queue once more.
        try await Task.sleep(for: .seconds(16))
        let before = try inode(of: file)
        for _ in 0..<20 {
            let _: DaemonStatus = try daemon.call(.daemonStatus, DaemonStatusParameters(metrics: true))
        }
        try await Task.sleep(for: .seconds(17))
        #expect(try inode(of: file) == before)
        try daemon.configure(quickRetries + "metrics: {textfile: '@DIR@/other.prom'}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        try await eventually(that: "the other file is there", within: .seconds(10)) {
            access(daemon.directory.file("other.prom"), R_OK) == 0
        }
    }

    @Test("a directory that vanishes is a problem in the status and once in the log, and the daemon goes on")
    func problem() async throws {
        let daemon = try await DaemonProcess.started(quickRetries)
        try daemon.configure(quickRetries + "metrics: {textfile: '@DIR@/none/dld.prom'}\n")
        let refused = try await daemon.dlctl("reload")
        #expect(!refused.succeeded && refused.error.contains("/none does not exist"), "\(refused.error)")
        let checked = try await run(
            [DaemonProcess.program("dld"), "--config", daemon.configurationFile, "--check-config"])
        #expect(checked.status == .exited(78) && checked.error.contains("dld.yaml:2:21: "), "\(checked)")
        let place = try daemon.directory.makeDirectory("none")
        #expect(try await daemon.dlctl("reload").succeeded)
        try await eventually(that: "the file is there") { access("\(place)/dld.prom", R_OK) == 0 }
        try FileManager.default.removeItem(atPath: place)
        let status: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
        #expect(status.problems?.contains { $0.contains("/none does not exist") } == true, "\(status.problems ?? [])")
        _ = try await daemon.add("--paused", "http://127.0.0.1:1/a")
        try await eventually(that: "the log tells") { daemon.log.contains("the metrics are not written") }
        #expect(daemon.isRunning)
        try daemon.directory.makeDirectory("none")
        _ = try await daemon.add("--paused", "http://127.0.0.1:1/b")
        try await eventually(that: "the file is there again") { access("\(place)/dld.prom", R_OK) == 0 }
        let later: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
        #expect(later.problems == [])
        #expect(daemon.log.matches(of: /the metrics are not written/).count == 1)
    }

    private static let hasPromtool = access("/usr/bin/promtool", X_OK) == 0

    @Test(
        "promtool finds no fault in the metrics",
        .enabled(if: hasPromtool, "promtool is missing; make test-metrics installs it"))
    func promtool() async throws {
        let daemon = try await DaemonProcess.started(quickRetries + Self.textfile)
        let file = daemon.directory.file("dld.prom")
        try await eventually(that: "the file is there") { access(file, R_OK) == 0 }
        let checked = try await run(["sh", "-c", "promtool check metrics <\"$1\"", "sh", file])
        #expect(checked.succeeded && checked.output.isEmpty && checked.error.isEmpty, "\(checked)")
    }

    @Test(
        "promtool finds no fault in the alert rules",
        .enabled(if: hasPromtool, "promtool is missing; make test-metrics installs it"))
    func rules() async throws {
        let rules =
            URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path + "/config/alerts.yaml"
        let checked = try await run(["promtool", "check", "rules", rules])
        #expect(checked.succeeded, "\(checked)")
    }
}
