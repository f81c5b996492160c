import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Rates, connections and mirrors together")
struct RateCombinationTests {
    private let place: Place
    private let restarts = Notes<String>()
    private let faults = Notes<String>()

    init() throws { place = try Place() }

    private func manager(rate: Int64?) throws -> SessionManager {
        let manager = try SessionManager(
            configuration: .test {
                $0.downloadRate = rate
                $0.maximumConnectionsPerHost = 64
            })
        manager.delegate.downloadTaskDidRestart = { [restarts] _, reason in restarts.add(reason) }
        manager.delegate.sessionDidFindFault = { [faults] in faults.add($0) }
        return manager
    }

    private static let numbers: [Segments] = [.one, .fixed(2), .fixed(4), .fixed(16), .automatic]

    /// Returns the milliseconds that the download of `resource` takes.
    private func time(
        _ resource: Resource, rate: Int64?, _ segments: Segments, hasMirror: Bool
    ) async throws -> Int64 {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        defer { server.stop() }
        let manager = try manager(rate: rate)
        var request = TransferRequest(url: server.url("/f"))
        request.segments = segments
        // A second name of the same server is another source.
        if hasMirror { request.mirrors = ["http://localhost:\(server.port)/f"] }
        let digest = hasMirror ? sha256(of: resource) : nil
        let begin = ContinuousClock.now
        let download = manager.download(
            request, to: place.target("f\(segments.most)", conflict: .overwrite, digest: digest))
        let file = try await download.value
        let took = begin.duration(to: .now)
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(restarts.all.isEmpty)
        #expect(faults.all.isEmpty)
        #expect(manager.session.internalFaults == 0)
        // Only the rest of a response whose claim is shortened may be received twice.
        #expect(download.progress.transferredBytes <= resource.size + 64 << 10)
        return took.components.seconds * 1000 + took.components.attoseconds / 1_000_000_000_000_000
    }

    @Test("a rate is kept to with any number of connections", arguments: numbers, [false, true])
    func rate(segments: Segments, hasMirror: Bool) async throws {
        let resource = Resource(size: 13 << 20)
        let rate: Int64 = 12 << 20
        let ideal = resource.size * 1000 / rate
        let took = try await time(resource, rate: rate, segments, hasMirror: hasMirror)
        #expect(took <= Int64(Double(ideal) * 1.1 * TimeMargin.factor) + 300, "\(took) ms, ideally \(ideal)")
    }

    @Test("connections are added where a rate limit is far above what one of them brings")
    func growthBelowLimit() async throws {
        let resource = Resource(size: 24 << 20)
        let server = try ScriptedServer(
            line: NetworkLine(roundTrip: 5, rate: 500_000), ["/f": [.serve(resource)]])
        defer { server.stop() }
        let manager = try manager(rate: 4_000_000)
        var request = TransferRequest(url: server.url("/f"))
        request.segments = .automatic
        let begin = ContinuousClock.now
        let file = try await manager.download(request, to: place.target("f")).value
        let took = begin.duration(to: .now)
        #expect(resource.difference(fromFileAt: file.path) == nil)
        // It takes 50 seconds over one connection, 6.3 at the limit.
        #expect(took < .seconds(15 * TimeMargin.factor), "\(took)")
    }

    @Test("of requests that share a rate none has less than half its share, however many connections each has")
    func equalShares() async throws {
        let resource = Resource(size: 64 << 20)
        let server = try ScriptedServer(["/f": [.serve(resource)], "/g": [.serve(resource)]])
        defer { server.stop() }
        let manager = try manager(rate: 16 << 20)
        let downloads = [("/f", Segments.one), ("/g", .fixed(16))].map { path, segments in
            var request = TransferRequest(url: server.url(path))
            request.segments = segments
            let target = place.target(String(path.dropFirst()), part: ".part" + path.dropFirst())
            return manager.download(request, to: target)
        }
        for download in downloads { download.resume() }
        try await eventually(that: "32 MiB came") {
            downloads.reduce(0) { $0 + $1.progress.transferredBytes } >= 32 << 20
        }
        let shares = downloads.map { Double($0.progress.transferredBytes) / Double(32 << 20) }
        #expect(shares.allSatisfy { $0 > 0.25 }, "\(shares)")
        for download in downloads { download.cancel(keepingBytes: false) }
        for download in downloads { _ = await download.outcome }
        #expect(manager.session.internalFaults == 0)
    }
}
