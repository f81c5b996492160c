import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Downloads over several connections")
struct SegmentTests {
    private let place: Place
    private let restarts = Notes<String>()

    init() throws { place = try Place() }

    private func manager() throws -> SessionManager {
        let manager = try SessionManager(configuration: .test())
        manager.delegate.downloadTaskDidRestart = { [restarts] _, reason in restarts.add(reason) }
        return manager
    }

    private func seconds(_ resource: Resource, _ line: NetworkLine, _ segments: Segments) async throws -> Double {
        let server = try ScriptedServer(line: line, ["/f": [.serve(resource)]])
        defer { server.stop() }
        let manager = try manager()
        let begin = ContinuousClock.now
        var request = TransferRequest(url: server.url("/f"))
        request.segments = segments
        let file = try await manager.download(request, to: place.target("f\(segments.most)", conflict: .overwrite)).value
        let took = begin.duration(to: .now)
        #expect(resource.difference(fromFileAt: file.path) == nil)
        unlink(file.path)
        print(
            "TIMES", segments, took, "connections", line.connections, "requests", server.requests().count, "sent",
            server.bodyBytesSent(for: "/f") - resource.size)
        return Double(took.components.attoseconds) / 1e18 + Double(took.components.seconds)
    }

    @Test("trial")
    func trial() async throws {
        let resource = Resource(size: 512 << 20)
        for segments in [Segments.automatic, .fixed(16), .fixed(8), .fixed(4)] {
            _ = try await seconds(resource, NetworkLine(roundTrip: 40, rate: 12_500_000), segments)
        }
    }
}
