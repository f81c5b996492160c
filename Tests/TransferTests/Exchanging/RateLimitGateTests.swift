import Curl
import Testing

@testable import Transfer

@Suite("Turns at a shared rate")
struct RateLimitGateTests {
    private static let rate: Int64 = 16 << 20

    /// A request with one connection on which pieces of one size are received as fast as the limit permits.
    private struct Receiver {
        let piece: Int
        var turn: RateLimitGate
        var passed = 0
        /// The time at which the waiting piece may pass; `nil` if none waits.
        var due: MonotonicTime?

        /// Passes pieces until one has to wait, or until `limit` bytes have passed.
        mutating func receive(upTo limit: Int = .max, at now: MonotonicTime) {
            if let due, due > now { return }
            var wait = due == nil ? turn.wait(toPass: piece, now: now) : turn.wait(now: now)
            while wait == 0 {
                turn.pass(piece)
                passed += piece
                if passed >= limit { return }
                wait = turn.wait(toPass: piece, now: now)
            }
            due = now.advanced(milliseconds: wait)
        }
    }

    private func session() throws -> Session {
        var configuration = SessionConfiguration()
        configuration.downloadRate = Self.rate
        return try Session(configuration: configuration)
    }

    private func receiver(on session: Session, piece: Int) -> Receiver {
        let task = session.dataTask(with: TransferRequest(url: "http://127.0.0.1/"))
        let turn = RateLimitGate(
            .download, at: (scheme: "http", host: "127.0.0.1", port: 80), limits: ByteLimits(task.core),
            session: session)
        return Receiver(piece: piece, turn: turn)
    }

    @Test("requests whose bytes arrive in small pieces have as much of a rate as one with large pieces")
    func equalShares() throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let begun = MonotonicTime.now()
        var receivers = [128, 16, 4, 1].map { receiver(on: session, piece: $0 << 10) }
        for millisecond in 0..<4_000 as Range<Int64> {
            for index in receivers.indices { receivers[index].receive(at: begun.advanced(milliseconds: millisecond)) }
        }
        let total = receivers.reduce(0) { $0 + $1.passed }
        #expect(abs(total - 4 * Int(Self.rate)) < Int(Self.rate) / 10)
        for receiver in receivers {
            #expect(receiver.passed > total / 5, "\(receiver.piece): \(receiver.passed) of \(total)")
        }
    }

    @Test("a request that ends gives back what it counted beyond its bytes")
    func givesBack() throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let begun = MonotonicTime.now()
        var passed = 0
        // Small files, one after another.
        for millisecond in 0..<1_000 as Range<Int64> {
            var file = receiver(on: session, piece: 4 << 10)
            let now = begun.advanced(milliseconds: millisecond)
            guard file.turn.wait(toPass: file.piece, now: now) == 0 else {
                file.turn.giveBack()
                continue
            }
            file.turn.pass(file.piece)
            let wait = file.turn.wait(toPass: file.piece, now: now)
            file.turn.giveBack()
            passed += file.piece
            #expect(wait < 1_000)
        }
        #expect(passed > 3 << 20, "\(passed)")
    }

    /// The connections that were woken up because they may pass earlier.
    private final class Woken {
        var indices: Set<Int> = []
    }

    @Test("the connections of a request take no longer together than its own rate implies", arguments: [1, 4, 16])
    func ownRate(connections: Int) throws {
        let session = try Session()
        defer { session.invalidateAndCancel() }
        var request = TransferRequest(url: "http://127.0.0.1/")
        request.maximumRate = 20 << 20
        let (limits, woken) = (ByteLimits(session.dataTask(with: request).core), Woken())
        let (piece, segment) = (16 << 10, (30 << 20) / connections)
        let begun = MonotonicTime.now()
        var receivers = (0..<connections).map { index in
            Receiver(
                piece: piece,
                turn: RateLimitGate(
                    .download, at: (scheme: "http", host: "127.0.0.1", port: 80), limits: limits, session: session,
                    makeWake: { { woken.indices.insert(index) } }))
        }
        var left = Set(receivers.indices)
        var milliseconds: Int64 = 0
        while !left.isEmpty, milliseconds < 10_000 {
            milliseconds += 1
            for index in left.sorted() {
                if woken.indices.remove(index) != nil { receivers[index].due = begun }
                receivers[index].receive(upTo: segment, at: begun.advanced(milliseconds: milliseconds))
                guard receivers[index].passed >= segment else { continue }
                receivers[index].turn.giveBack()
                left.remove(index)
            }
        }
        #expect(milliseconds < 1_500 * 105 / 100, "\(milliseconds) ms")
    }

    @Test("what was deducted under a rate that was lifted does not count under the next one")
    func liftedRate() throws {
        let session = try Session()
        defer { session.invalidateAndCancel() }
        var request = TransferRequest(url: "http://127.0.0.1/")
        request.maximumRate = 1_000
        let task = session.dataTask(with: request)
        var turn = RateLimitGate(
            .download, at: (scheme: "http", host: "127.0.0.1", port: 80), limits: ByteLimits(task.core),
            session: session)
        let now = MonotonicTime.now()
        #expect(turn.wait(toPass: 1_000_000, now: now) > 900_000)
        turn.pass(1_000_000)
        task.core.maximumRate = nil
        #expect(turn.wait(toPass: 1_000_000, now: now) == 0)
        turn.pass(1_000_000)
        task.core.maximumRate = 1_000
        #expect(turn.wait(toPass: 1_000, now: now) < 2_000)
    }
}
