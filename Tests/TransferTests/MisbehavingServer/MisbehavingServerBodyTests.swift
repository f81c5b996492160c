import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: bodies")
struct MisbehavingServerBodyTests {
    /// Returns a lie that modifies every honest response, to any request.
    private static func bending(
        _ name: String, failures: Set<TransferError.Code> = [],
        _ bend: @escaping @Sendable (MisbehavingResponse, MisbehavingServer.Question) -> MisbehavingResponse
    ) -> Lie {
        Lie(name, failures: failures) { bend(MisbehavingResponse(honest: MisbehavingServer.a, to: $0), $0) }
    }

    /// Returns an offset within a body that differs for each request and is the same in each run.
    private static func place(in length: Int64, _ number: Int, salt: UInt64) -> Int64 {
        var generator = SeededGenerator(seed: salt &* 1000 &+ UInt64(number))
        return length <= 1 ? 0 : Int64.random(in: 1..<length, using: &generator)
    }

    /// Returns a lie that cuts nine responses, each at another offset.
    private static func cut(
        _ name: String, salt: UInt64, _ ending: MisbehavingResponse.Ending,
        _ bend: @escaping @Sendable (MisbehavingResponse) -> MisbehavingResponse = { $0 }
    ) -> Lie {
        bending(name) { answer, question in
            let answer = bend(answer)
            guard question.number < 9 else { return answer }
            return answer.cut(after: place(in: answer.length, question.number, salt: salt), ending)
        }.but { $0.mostRequests = 300 }
    }

    private static func lengths(_ name: String, _ text: String, failures: Set<TransferError.Code>) -> Lie {
        bending(name, failures: failures) { answer, _ in answer.with("Content-Length", text) }
            .but { $0.mostRequests = 100 }
    }

    private static let garbage = Array(repeating: UInt8(ascii: "x"), count: 5000)

    static let lies: [Lie] =
        (1...3).flatMap { salt in
            [
                cut("F28 cut at random places, \(salt)", salt: salt, .close),
                cut("F27 reset at random places, \(salt)", salt: salt, .reset),
                cut("F30 chunks cut at random places, \(salt)", salt: salt, .close) { $0.chunked() },
            ]
        } + [
            bending("F28 always cut after 3 MiB") { answer, _ in answer.cut(after: 3 << 20) },
            bending("F27 always reset after 3 MiB") { answer, _ in answer.cut(after: 3 << 20, .reset) },
            bending("F30 all chunks") { answer, _ in answer.chunked() },
            bending("F30 chunked parts, the whole with a length") { answer, question in
                let answer = answer.isPart ? answer.chunked() : answer
                return question.number == 0 ? answer.cut(after: MisbehavingServer.firstCut) : answer
            },
            bending("F30 a chunk that lies about its size", failures: [.truncated]) { answer, question in
                guard question.number < 3 else { return answer }
                var answer = answer.chunked()
                answer.isChunked = false
                answer.body = [.raw(Array("ffffff\r\n".utf8))] + answer.cut(after: 5_000_000).body
                answer.ending = .close
                return answer
            },
            bending("F30 a chunk whose size is garbage") { answer, question in
                guard question.number < 3 else { return answer }
                var answer = answer.chunked()
                answer.isChunked = false
                answer.body = [.raw(Array("zz\r\n".utf8))] + answer.body
                answer.ending = .close
                return answer
            },
            bending("longer than Content-Length says") { answer, _ in
                var answer = answer
                answer.body.append(.bytes(garbage))
                answer.ending = .close
                return answer
            },
            bending("longer than Content-Length says, on a connection that stays") { answer, _ in
                var answer = answer
                answer.body.append(.bytes(garbage))
                return answer
            },
            bending("shorter than Content-Length says, on a connection that stays") { answer, question in
                question.number < 2 ? answer.cut(after: answer.length / 2, .hang) : answer
            },
            bending("longer than Content-Range says") { answer, question in
                var answer = question.number == 0 ? answer.cut(after: MisbehavingServer.firstCut) : answer
                guard answer.isPart else { return answer }
                answer = answer.chunked()
                answer.body.append(.bytes(garbage))
                return answer
            },
            bending("shorter than Content-Range says") { answer, question in
                let answer = question.number == 0 ? answer.cut(after: MisbehavingServer.firstCut) : answer
                guard answer.isPart else { return answer }
                return answer.cut(after: answer.length - min(answer.length / 2, 300_000), .open).chunked()
            }.but { $0.mostRequests = 1000 },
            lengths("Content-Length: -5", "-5", failures: [.truncated, .cannotConnect, .internal]),
            lengths("Content-Length: 12abc", "12abc", failures: [.truncated, .cannotConnect, .internal]),
            lengths("Content-Length: empty", "", failures: [.truncated, .cannotConnect, .internal]),
            lengths(
                "Content-Length past all numbers", "99999999999999999999",
                failures: [.truncated, .cannotConnect, .internal, .tooLarge]),
            lengths("Content-Length twice in one", "5, 5", failures: [.truncated, .cannotConnect, .internal]),
            bending("two Content-Lengths", failures: [.truncated, .cannotConnect, .internal, .remoteChanged]) {
                answer, _ in
                var answer = answer
                answer.fields.insert("Content-Length: 1000", at: 0)
                return answer
            },
            // RFC 9112, section 6.3: this should be treated as an error.
            bending("Content-Length and chunks", failures: [.remoteChanged]) { answer, _ in
                var answer = answer.chunked()
                answer.fields.append("Content-Length: 1000")
                return answer
            },
            bending("HTTP/1.0 without a length", failures: [.remoteChanged]) { answer, _ in
                var answer = answer.with("Content-Length", nil)
                answer.version = "HTTP/1.0"
                answer.ending = .close
                return answer
            },
            Lie("an empty file", versions: [Resource(size: 0)]) {
                MisbehavingResponse(honest: Resource(size: 0), to: $0)
            },
            Lie("an empty file in chunks", versions: [Resource(size: 0)]) { _ in
                MisbehavingResponse(whole: Resource(size: 0)).chunked()
            },
            Lie("204 to all", versions: [], failures: [.httpStatus, .truncated]) { _ in noContent(204) },
            Lie("205 to all", versions: [], failures: [.httpStatus, .truncated]) { _ in noContent(205) },
            bending("a few informational answers") { answer, _ in
                var answer = answer
                answer.interim = Array(String(repeating: "HTTP/1.1 102 Wait\r\nX: y\r\n\r\n", count: 20).utf8)
                return answer
            },
            bending("A20 100 informational answers", failures: [.tooLarge]) { answer, _ in
                var answer = answer
                answer.interim = Array(String(repeating: "HTTP/1.1 102 Wait\r\nX: y\r\n\r\n", count: 100).utf8)
                return answer
            },
            Lie("A20 informational answers without an end", versions: [], failures: [.tooLarge]) { _ in
                .raw([.endless(Array("HTTP/1.1 103 More\r\n\r\n".utf8))])
            },
            bending("100 KB of fields") { answer, _ in
                answer.with("X-Long", String(repeating: "x", count: 50_000))
                    .with("X-Longer", String(repeating: "y", count: 50_000))
            },
            Lie("A20 fields without an end", versions: [], failures: [.tooLarge]) { _ in
                .raw([.raw(Array("HTTP/1.1 200 OK\r\n".utf8)), .endless(Array("X-Field: value\r\n".utf8))])
            },
            // libcurl reports a line of more than 100 KiB as being out of memory.
            Lie("A20 one field without an end", versions: [], failures: [.tooLarge]) { _ in
                .raw([.raw(Array("HTTP/1.1 200 OK\r\nX: ".utf8)), .endless(garbage)])
            },
            Lie("no HTTP at all", versions: [], failures: [.truncated, .cannotConnect, .internal]) { _ in
                .raw([.raw(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))])
            },
        ]

    static let trailers =
        bending("A20 trailers without an end", failures: [.tooLarge, .truncated]) { answer, question in
            guard question.number < 4 else { return answer }
            var answer = answer.chunked()
            answer.body += [.raw(Array("0\r\n".utf8)), .endless(Array("X-Trailer: value\r\n".utf8))]
            return answer
        }

    private static func noContent(_ status: Int) -> MisbehavingResponse {
        // Only a 204 ends with its head (RFC 9112, section 6.3).
        var answer = MisbehavingResponse(status)
        if status == 204 { answer.remove("Content-Length") }
        return answer
    }

    @Test("a download is whole or fails, wherever its bodies end", .timeLimit(.minutes(20)), arguments: lies)
    func withstands(lie: Lie) async { await withstand(lie) }

    @Test(
        "A20 trailers without an end do not hold a download for ever",
        .timeLimit(.minutes(20)))
    func trailers() async { await withstand(Self.trailers) }
}
