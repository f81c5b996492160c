import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// Downloads of random shape under random orders of events. Debug builds check the invariants of `DownloadRun` after
/// each event.
@Suite("Downloads under random orders of events")
struct DownloadEventOrderTests {
    /// A download and the generator of all its random parameters.
    private struct Round {
        var generator: SeededGenerator
        let resource: Resource
        let segments: Segments
        let hasMirror: Bool
        let rate: Int64
        let isUncertain: Bool

        init(seed: UInt64) {
            generator = SeededGenerator(seed: seed)
            resource = Resource(size: .random(in: 1..<(9 << 20), using: &generator), seed: seed)
            segments = [.one, .fixed(2), .fixed(4), .fixed(16), .automatic].randomElement(using: &generator) ?? .one
            hasMirror = .random(using: &generator)
            rate = [2 << 20, 5 << 20, 20 << 20, 80 << 20].randomElement(using: &generator) ?? 5 << 20
            isUncertain = .random(using: &generator)
        }
    }

    /// Returns the response of an honest server that sometimes closes a connection, fails, or is slow.
    private static func answer(_ question: MisbehavingServer.Question, seed: UInt64, of resource: Resource)
        -> MisbehavingResponse
    {
        var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(question.number))
        let answer = MisbehavingResponse(honest: resource, to: question, rate: 40_000_000)
        guard question.number < 40 else { return answer }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0 where answer.length > 1: return answer.cut(after: .random(in: 1..<answer.length, using: &generator))
        case 1 where answer.length > 1:
            return answer.cut(after: .random(in: 1..<answer.length, using: &generator), .reset)
        case 2 where question.number > 0: return MisbehavingResponse(503, text: "busy")
        case 3: return MisbehavingResponse(honest: resource, to: question, rate: 400_000)
        default: return answer
        }
    }

    private enum Event: CaseIterable {
        case suspend, resume, slower, faster, unlimited, checkpoint, confirm, sessionRate
    }

    @Test("every order leads to the whole file, and no complete byte is fetched again", arguments: 0..<24)
    func order(seed: Int) async throws {
        var round = Round(seed: UInt64(seed))
        let (resource, isUncertain) = (round.resource, round.isUncertain)
        let server = try MisbehavingServer { question in
            isUncertain
                ? Self.answer(question, seed: UInt64(seed), of: resource)
                : MisbehavingResponse(honest: resource, to: question, rate: 40_000_000)
        }
        defer { server.stop() }
        let place = try Place()
        let restarts = Notes<String>()
        let manager = try SessionManager(
            configuration: .test {
                $0.checkpointInterval = 256 << 10
                $0.checkpointLimit = 1 << 20
            })
        manager.retrier = CountingRetrier(limit: 50, delay: 5)
        manager.delegate.downloadTaskDidRestart = { _, reason in restarts.add(reason) }
        var request = TransferRequest(url: "http://127.0.0.1:\(server.ports[0])/f")
        request.segments = round.segments
        request.maximumRate = round.rate
        if round.hasMirror { request.mirrors = ["http://localhost:\(server.ports[0])/f"] }
        let digest = round.hasMirror ? sha256(of: resource) : nil
        let download = manager.download(request, to: place.target(digest: digest))
        // The daemon's part: checkpoints are recorded when they are due.
        download.onCheckpointDue {
            Task {
                if let data = try? await download.checkpoint() { download.confirm(data) }
            }
        }
        download.resume()
        for _ in 0..<30 {
            try await Task.sleep(for: .milliseconds(.random(in: 0..<15, using: &round.generator)))
            switch Event.allCases.randomElement(using: &round.generator) ?? .resume {
            case .suspend: download.suspend()
            case .resume: download.resume()
            case .slower: download.limit(to: 300_000)
            case .faster: download.limit(to: 30_000_000)
            case .unlimited: download.limit(to: nil)
            case .checkpoint: _ = try? await download.checkpoint()
            case .confirm: if let data = try? await download.checkpoint() { download.confirm(data) }
            case .sessionRate:
                manager.session.downloadLimiter.rate =
                    [nil, 1 << 20, 50 << 20].randomElement(using: &round.generator) ?? nil
            }
        }
        manager.session.downloadLimiter.rate = nil
        download.limit(to: nil)
        download.resume()
        let file = try await download.value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(manager.session.internalFaults == 0)
        if !round.isUncertain {
            #expect(restarts.all.isEmpty)
            #expect(download.progress.transferredBytes <= resource.size + 2 << 20)
        }
    }
}
