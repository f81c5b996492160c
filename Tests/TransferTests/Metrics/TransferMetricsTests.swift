import Curl
import TestSupport
import Testing

@testable import Transfer

@Suite("Metrics as text")
struct TransferMetricsTests {
    @Test("a timeline prints the steps that occurred")
    func timeline() {
        var timeline = ExchangeMetrics.Timeline(ended: 1_300)
        #expect("\(timeline)" == "ended 1.3 ms")
        (timeline.connected, timeline.requestBegan, timeline.firstByte) = (400, 500, 1_200)
        #expect("\(timeline)" == "connected 0.4 ms, request began 0.5 ms, first byte 1.2 ms, ended 1.3 ms")
    }

    @Test("metrics print the number of exchanges and redirects, and in a debugger each exchange without secrets")
    func metrics() async throws {
        #expect("\(TransferMetrics())" == "0 exchanges")
        let server = try ScriptedServer(["/a?key=secret": [.redirect("/b")], "/b": [.status(200)]])
        let manager = try SessionManager(configuration: .test())
        let metrics = await manager.request(server.url("/a?key=secret")).outcome.metrics
        #expect("\(metrics)".hasPrefix("2 exchanges, 1 redirect, ") && "\(metrics)".hasSuffix(" ms"))
        let lines = metrics.debugDescription.split(separator: "\n")
        try #require(lines.count == 3)
        #expect(lines[0] == metrics.description)
        let address = "127.0.0.1:\(server.port)"
        #expect(lines[1].hasPrefix("    \(server.url("/a?key=…")): 302, http/1.1, \(address), "))
        #expect(lines[2].hasPrefix("    \(server.url("/b")): 200, http/1.1, \(address), reused connection, "))
        #expect(lines[2].contains("first byte ") && lines[2].contains(", ended "))
        #expect(!metrics.debugDescription.contains("secret"))
    }
}
