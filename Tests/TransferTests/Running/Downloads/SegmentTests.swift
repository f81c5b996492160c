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

    private func seconds(
        _ resource: Resource, _ line: NetworkLine, _ segments: Segments, service: ScriptedServer.Service = .all,
        rate: Int64? = nil
    ) async throws -> Double {
        let server = try ScriptedServer(line: line, service: service, ["/f": [.serve(resource)]])
        defer { server.stop() }
        let manager = try manager()
        let begin = ContinuousClock.now
        var request = TransferRequest(url: server.url("/f"))
        request.segments = segments
        request.maximumRate = rate
        let file = try await manager.download(request, to: place.target("f\(segments.most)", conflict: .overwrite))
            .value
        let took = begin.duration(to: .now)
        #expect(resource.difference(fromFileAt: file.path) == nil)
        unlink(file.path)
        #expect(restarts.all.isEmpty)
        return Double(took.components.attoseconds) / 1e18 + Double(took.components.seconds)
    }

    @Test("automatic connections bring a file in hardly more time than the best number would")
    func automatic() async throws {
        let resource = Resource(size: 800 << 20)
        let line = { NetworkLine(roundTrip: 40, rate: 12_500_000) }
        let best = try await seconds(resource, line(), .fixed(16))
        let automatic = try await seconds(resource, line(), .automatic)
        #expect(best / automatic * TimeMargin.factor >= 0.9, "\(automatic) s, \(best) s with 16 connections")
    }

    @Test("one slow connection among several costs little", arguments: [0, 5])
    func slowConnection(number: Int) async throws {
        let resource = Resource(size: 160 << 20)
        let even = try await seconds(resource, NetworkLine(roundTrip: 40, rate: 6_000_000), .fixed(8))
        let line = NetworkLine(roundTrip: 40, rate: 6_000_000, slow: [number: 20_000])
        let uneven = try await seconds(resource, line, .fixed(8))
        #expect(uneven / even < 1.1 * TimeMargin.factor, "\(uneven) s, \(even) s without it")
    }

    @Test(
        "F80: where a server serves one connection and lets others wait, they cost hardly any time",
        arguments: [Segments.automatic, .fixed(4)], [ScriptedServer.Service.oneByOne, .onlyOne])
    func oneServed(segments: Segments, service: ScriptedServer.Service) async throws {
        let resource = Resource(size: 24 << 20)
        let line = { NetworkLine(roundTrip: 5, rate: 8_000_000) }
        let time = try await seconds(resource, line(), segments, service: service)
        let ideal = Double(resource.size) / 8_000_000
        #expect(time / ideal <= 1.15 * TimeMargin.factor, "\(time) s, ideally \(ideal) s")
    }

    @Test(
        "F80: the same holds with a rate limit", arguments: [Segments.automatic, .fixed(4)],
        [ScriptedServer.Service.oneByOne, .onlyOne])
    func oneServedSlowly(segments: Segments, service: ScriptedServer.Service) async throws {
        let resource = Resource(size: 12 << 20)
        let line = NetworkLine(roundTrip: 5, rate: 20_000_000)
        let time = try await seconds(resource, line, segments, service: service, rate: 4_000_000)
        let ideal = Double(resource.size) / 4_000_000
        #expect(time / ideal <= 1.15 * TimeMargin.factor, "\(time) s, ideally \(ideal) s")
    }

    @Test(
        "F80: a host that serves one connection is remembered: the next download opens no other",
        arguments: [Segments.automatic, .fixed(4)])
    func oneServedIsRemembered(segments: Segments) async throws {
        let resource = Resource(size: 24 << 20)
        let server = try ScriptedServer(
            line: NetworkLine(roundTrip: 5, rate: 12_000_000), service: .onlyOne,
            ["/1": [.serve(resource)], "/2": [.serve(resource)]])
        let manager = try manager()
        var accepted = 0
        for (path, connections) in [("/1", 2...17), ("/2", 0...1)] {
            var request = TransferRequest(url: server.url(path))
            request.segments = segments
            let download = manager.download(request, to: place.target(String(path.dropFirst())))
            #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
            // A request that is never answered is not recorded; its connection is counted.
            #expect(connections.contains(server.connectionsAccepted - accepted))
            #expect(server.requests(for: path).count == 1)
            #expect(server.bodyBytesSent(for: path) == resource.size)
            accepted = server.connectionsAccepted
        }
        #expect(restarts.all.isEmpty)
    }

    @Test("where more connections bring nothing, few are kept")
    func shared() async throws {
        let resource = Resource(size: 100 << 20)
        let line = NetworkLine(roundTrip: 20, rate: 12_500_000, total: 12_500_000)
        let server = try ScriptedServer(line: line, ["/f": [.serve(resource)]])
        let manager = try manager()
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        var last = 0
        for await progress in request.progress where progress.fractionCompleted.map({ $0 > 0.7 && $0 < 0.9 }) ?? false {
            last = max(last, request.progress.connections)
        }
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
        #expect((1...4).contains(last), "\(last)")
    }

    @Test("where a redirect led to may refuse later connections: the URL itself is asked where it leads now")
    func expiredTarget() async throws {
        let resource = Resource(size: 48 << 20)
        let server = try ScriptedServer(
            line: NetworkLine(roundTrip: 5, rate: 6_000_000),
            [
                "/f": [.redirect("/1"), .redirect("/2")],
                "/1": [.serve(resource), .serve(resource), .serve(resource), .serve(resource), .status(403)],
                "/2": [.serve(resource)],
            ])
        var request = TransferRequest(url: server.url("/f"))
        request.segments = .fixed(4)
        let manager = try manager()
        let file = try await manager.download(request, to: place.target()).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(restarts.all.isEmpty)
        #expect(server.requests().contains { $0.path == "/2" })
    }

    @Test("a part cut short is noticed by the connection whose work another takes over: that one goes no further")
    func cutShortAtTakeOver() async throws {
        // Claims of whole mebibytes, and therefore of whole blocks: nothing is left to write when the last of them
        // ends.
        let resource = Resource(size: 4 << 20)
        let server = try MisbehavingServer { question in
            var answer = MisbehavingResponse(honest: resource, to: question)
            guard question.number > 0 else {
                // This response begins when the other connection is active, and is so slow that none of its bytes are
                // written to the disk.
                answer.body = [.pause(milliseconds: 150), .content(resource, 0..<resource.size, rate: 100_000)]
                return answer
            }
            guard let range = question.range(of: resource.size), range.lowerBound > 0, range.upperBound == resource.size
            else { return answer }
            // The last byte is on the disk long before the end of the response is received.
            answer.body.append(.pause(milliseconds: 400))
            return answer.chunked()
        }
        let path = place.temporary.file(Place.partName)
        let manager = try manager()
        var request = TransferRequest(url: server.url("/f"))
        request.segments = .fixed(2)
        let download = manager.download(request, to: place.target())
        download.resume()
        try await eventually(that: "the last byte is on the disk", every: .milliseconds(2)) {
            var status = stat()
            return stat(path, &status) == 0 && status.st_size == resource.size
        }
        truncate(path, 1000)
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        #expect(restarts.all == ["another process truncated the part file"])
    }
}
