import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Servers that send little, or without an end", .timeLimit(.minutes(1)))
struct LeastPaceTests {
    private let place: Place

    init() throws { place = try Place() }

    private func manager(stall: Int64) throws -> SessionManager {
        try SessionManager(configuration: .test { $0.stallTimeout = stall })
    }

    private static func drip(_ text: String, times: Int, every milliseconds: Int) -> [MisbehavingResponse.Piece] {
        (0..<times).flatMap { _ in [.pause(milliseconds: milliseconds), .bytes(Array(text.utf8))] }
    }

    private static let end: MisbehavingResponse.Piece = .bytes(Array("Content-Length: 1\r\n\r\nx".utf8))
    private static let status: MisbehavingResponse.Piece = .bytes(Array("HTTP/1.1 200 OK\r\n".utf8))

    /// The pauses are each shorter than a stall; together they exceed the time limit for a head.
    private static let heads: [String: [MisbehavingResponse.Piece]] = [
        "lines": [status] + drip("X: y\r\n", times: 30, every: 100) + [end],
        "informational": drip("HTTP/1.1 102 Processing\r\n\r\n", times: 30, every: 100) + [status, end],
    ]

    @Test(
        "F31: a head that drips, line by line or by informational ones, ends as a stall",
        arguments: heads.keys.sorted())
    func head(kind: String) async throws {
        let pieces = Self.heads[kind] ?? []
        let liar = try MisbehavingServer { _ in .raw(pieces) }
        let manager = try manager(stall: 400)
        let download = await manager.download(liar.url(), to: place.target()).outcome
        #expect(download.result.error?.code == .stalled)
        let upload = manager.upload(.data(Array("x".utf8)), with: liar.url())
        #expect(await upload.outcome.result.error?.code == .stalled)
        #expect(place.names.isEmpty)
    }

    @Test("what is sent between two heads counts as activity")
    func continued() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let manager = try manager(stall: 400)
        var request = TransferRequest(url: server.url("/in"), method: .put)
        request.headerFields[.expect] = "100-continue"
        request.maximumRate = 100_000
        let upload = manager.upload(.data(Resource(size: 400_000).bytes), with: request)
        #expect(await upload.outcome.result.error == nil)
        #expect(server.requests().first?.body.count == 400_000)
    }

    @Test("F31: what a server says of an upload may not drip; where the status is all that counts, it is left")
    func answer() async throws {
        let pieces = Self.drip("x", times: 60, every: 100)
        let liar = try MisbehavingServer { _ in
            var answer = MisbehavingResponse(200)
            answer.fields = ["Content-Length: 60"]
            answer.body = pieces
            return answer
        }
        let manager = try manager(stall: 1_000)
        var request = TransferRequest(url: liar.url(), method: .put)
        let collected = manager.upload(.data(Array("x".utf8)), with: request)
        #expect(await collected.outcome.result.error?.code == .stalled)
        request.ignoresAnswerBody = true
        let discarded = manager.upload(.data(Array("x".utf8)), with: request).validate()
        #expect(await discarded.outcome.result.error == nil)
    }

    @Test("A20: an answer without an end to an upload is left once its status is known, or where nothing is taken")
    func endless() async throws {
        let head = "HTTP/1.1 201 Created\r\n\r\n"
        let liar = try MisbehavingServer { _ in
            .raw([.bytes(Array(head.utf8)), .endless(Array(repeating: 0x78, count: 4096))])
        }
        let manager = try manager(stall: 60_000)
        var request = TransferRequest(url: liar.url(), method: .put)
        request.ignoresAnswerBody = true
        let upload = manager.upload(.data(Array("x".utf8)), with: request).validate()
        #expect(await upload.outcome.result.error == nil)
        #expect(liar.bodyBytesSent < 16 << 20)

        var body = DiscardedBody()
        #expect(body.pass(Int(DiscardedBody.limit), sent: 0) == .goesOn)
        #expect(body.pass(400, sent: 100) == .goesOn && body.pass(1, sent: 100) == .isTooMuch)
        #expect(body.pass(Int(DiscardedBody.limit), sent: nil) == .goesOn && !body.isOver)
        #expect(body.pass(1, sent: nil) == .isEnough && body.isOver)
        #expect(body.pass(1, sent: .max) == .goesOn)
    }

    @Test("F41: a server that hands out a byte for each request is not asked as fast as it answers")
    func shortResponses() async throws {
        let resource = MisbehavingServer.a
        let liar = try MisbehavingServer { question in
            let honest = MisbehavingResponse(honest: resource, to: question)
            guard question.number > 0, let range = question.range(of: resource.size) else {
                return honest.cut(after: 100_000)
            }
            var answer = honest
            let first = range.lowerBound
            answer.set("Content-Range", "bytes \(first)-\(first)/\(resource.size)")
            answer.set("Content-Length", "1")
            answer.body = [.content(resource, first..<(first + 1))]
            return answer
        }
        let manager = try manager(stall: 60_000)
        manager.retrier = CountingRetrier(limit: 1)
        var wish = TransferRequest(url: liar.url())
        wish.segments = .one
        let begin = ContinuousClock.now
        let request = manager.download(wish, to: place.target()).resume()
        try await eventually(that: "it is asked 22 times", every: .milliseconds(2)) { liar.requests.count >= 23 }
        // The back-offs are 50, 100, 200, 400 and 800 ms.
        #expect(begin.duration(to: .now) >= .milliseconds(1_500))
        request.cancel()
        _ = await request.outcome
    }
}
