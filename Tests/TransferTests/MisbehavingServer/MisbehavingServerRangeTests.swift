import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: what comes in place of a range")
struct MisbehavingServerRangeTests {
    /// Returns a lie that modifies partial responses. Requests for the whole file get honest responses, except that the
    /// first one is cut.
    static func bending(
        _ name: String, _ resource: Resource = MisbehavingServer.a,
        _ bend: @escaping @Sendable (inout MisbehavingResponse, MisbehavingServer.Question) -> Void
    ) -> Lie {
        Lie(name, versions: [resource]) { question in
            var answer = MisbehavingResponse(honest: resource, to: question)
            if question.number == 0, !question.asksForRange { return answer.cut(after: MisbehavingServer.firstCut) }
            if answer.isPart { bend(&answer, question) }
            return answer
        }.but { $0.before = { MisbehavingResponse(honest: resource, to: $0) } }
    }

    static func contentRange(_ name: String, _ text: @escaping @Sendable (Range<Int64>) -> String?) -> Lie {
        bending(name) { answer, question in
            answer.set("Content-Range", question.range(of: MisbehavingServer.size).flatMap(text))
        }
    }

    /// Returns a lie that sends another range than requested, with consistent fields.
    static func shifted(_ name: String, _ shift: @escaping @Sendable (Range<Int64>) -> Range<Int64>) -> Lie {
        bending(name) { answer, question in
            guard let range = question.range(of: MisbehavingServer.size).map(shift) else { return }
            answer.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(MisbehavingServer.size)")
            answer.set("Content-Length", "\(range.count)")
            answer.body = [.content(MisbehavingServer.a, range, rate: MisbehavingResponse.rate)]
        }
    }

    /// Returns a lie in which every byte was received in an earlier life, without any sign that the last one was the
    /// end.
    private static func atEnd(
        _ name: String, versions: [Resource] = [MisbehavingServer.a], _ answer: @escaping MisbehavingServer.Answering
    ) -> Lie {
        Lie(name, versions: versions, answer).but { lie in
            lie.lives = [.resumed]
            lie.earlierBytes = nil
            lie.before = { _ in
                MisbehavingResponse(whole: MisbehavingServer.a).chunked().cut(after: MisbehavingServer.size)
            }
        }
    }

    static let lies: [Lie] = [
        // F39
        bending("F39 ignore: 200 for a range") { answer, _ in answer = MisbehavingResponse(whole: MisbehavingServer.a)
        },
        bending("F39 ignore, Accept-Ranges: none") { answer, _ in
            answer = MisbehavingResponse(whole: MisbehavingServer.a, fields: ["Accept-Ranges: none"])
        },
        bending("F39 ignore, in chunks") { answer, _ in
            answer = MisbehavingResponse(whole: MisbehavingServer.a).chunked()
        },
        bending("F39 ignore, HTTP/1.0 without a length") { answer, _ in
            answer = MisbehavingResponse(whole: MisbehavingServer.a).with("Content-Length", nil)
            answer.version = "HTTP/1.0"
            answer.ending = .close
        },
        Lie("F39 ignore, and always cut", versions: [], failures: [.truncated, .remoteChanged]) { question in
            MisbehavingResponse(whole: MisbehavingServer.a).cut(after: MisbehavingServer.firstCut)
        },
        // F40
        shifted("F40 fullas206") { _ in 0..<MisbehavingServer.size },
        bending("F40 fullas206 under the range's name") { answer, _ in
            answer.set("Content-Length", "\(MisbehavingServer.size)")
            answer.body = [.content(MisbehavingServer.a, 0..<MisbehavingServer.size, rate: MisbehavingResponse.rate)]
        },
        shifted("F40 early") { max(0, $0.lowerBound - 1000)..<$0.upperBound },
        shifted("F40 late") { min($0.lowerBound + 1000, $0.upperBound - 1)..<$0.upperBound },
        shifted("F40 longer than asked for") { $0.lowerBound..<min($0.upperBound + 500_000, MisbehavingServer.size) },
        contentRange("F40 nocr") { _ in nil },
        contentRange("F40 lencr: one less") { "bytes \($0.lowerBound)-\($0.upperBound - 2)/\(MisbehavingServer.size)" },
        contentRange("F40 lencr: one more") {
            "bytes \($0.lowerBound)-\(min($0.upperBound, MisbehavingServer.size - 1))/\(MisbehavingServer.size)"
        },
        contentRange("F40 wrong total") { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(MisbehavingServer.size + 1)" },
        contentRange("F40 unknown total") { "bytes \($0.lowerBound)-\($0.upperBound - 1)/*" },
        contentRange("F40 invalid Content-Range: first past last") {
            "bytes \($0.upperBound)-\($0.lowerBound)/\(MisbehavingServer.size)"
        },
        contentRange("F40 invalid Content-Range: garbage") { _ in "bytes abc" },
        contentRange("F40 invalid Content-Range: past all numbers") {
            "bytes \($0.lowerBound)-99999999999999999999/99999999999999999999"
        },
        contentRange("F40 the form of a 416") { _ in "bytes */\(MisbehavingServer.size)" },
        contentRange("F40 other unit") { "lines \($0.lowerBound)-\($0.upperBound - 1)/\(MisbehavingServer.size)" },
        contentRange("F40 the unit in capitals") {
            "Bytes \($0.lowerBound)-\($0.upperBound - 1)/\(MisbehavingServer.size)"
        },
        bending("F40 multipart/byteranges") { answer, question in
            guard let range = question.range(of: MisbehavingServer.size) else { return }
            let lines =
                "--x\r\nContent-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/"
                + "\(MisbehavingServer.size)\r\n\r\n"
            answer.set("Content-Type", "multipart/byteranges; boundary=x")
            answer.set("Content-Range", nil)
            let end = "\r\n--x--\r\n"
            answer.set("Content-Length", "\(range.count + lines.utf8.count + end.utf8.count)")
            answer.body = [.bytes(Array(lines.utf8))] + answer.body + [.bytes(Array(end.utf8))]
        },
        bending("F40 other tag") { answer, _ in answer.set("ETag", "\"other\"") },
        bending("F40 the tag turned weak") { answer, _ in answer.set("ETag", "W/\(MisbehavingServer.a.entityTag ?? "")")
        },
        bending("F40 no tag") { answer, _ in answer.set("ETag", nil) },
        // F41
        bending("F41 short: 1 byte, five times") { answer, question in
            if question.rangesBefore < 5 { shorten(&answer, question) { _ in 1 } }
        },
        bending("F41 short: 1000 bytes, twenty times") { answer, question in
            if question.rangesBefore < 20 { shorten(&answer, question) { _ in 1000 } }
        },
        bending("F41 short: half") { answer, question in shorten(&answer, question) { ($0 + 1) / 2 } }
            .but { $0.mostRequests = 1000 },
        bending("F41 short: at most 1 MiB") { answer, question in shorten(&answer, question) { min($0, 1 << 20) } },
        // F42
        bending("F42 200cr, consistent") { answer, _ in answer.status = 200 },
        bending("F42 200cr, another total") { answer, question in
            guard let range = question.range(of: MisbehavingServer.size) else { return }
            answer.status = 200
            answer.set(
                "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(MisbehavingServer.size + 1)")
        },
        bending("F42 200cr with the whole body") { answer, question in
            guard let range = question.range(of: MisbehavingServer.size) else { return }
            answer = MisbehavingResponse(whole: MisbehavingServer.a).with(
                "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(MisbehavingServer.size)")
        },
        // F43
        bending("F43 lying 416") { answer, _ in
            answer = MisbehavingResponse(
                416,
                ["Content-Range: bytes */\(MisbehavingServer.size)", "ETag: \(MisbehavingServer.a.entityTag ?? "")"])
        },
        bending("F43 lying 416 of half the size") { answer, _ in
            answer = MisbehavingResponse(
                416,
                [
                    "Content-Range: bytes */\(MisbehavingServer.size / 2)",
                    "ETag: \(MisbehavingServer.a.entityTag ?? "")",
                ])
        },
        bending("F43 lying 416 of where the part ends") { answer, question in
            let start = question.range(of: MisbehavingServer.size)?.lowerBound ?? 0
            answer = MisbehavingResponse(
                416, ["Content-Range: bytes */\(start)", "ETag: \(MisbehavingServer.a.entityTag ?? "")"])
        },
        bending("F43 416body") { answer, _ in
            answer = MisbehavingResponse(
                416, ["Content-Range: bytes */\(MisbehavingServer.size)"],
                text: String(repeating: "<html>sorry</html>", count: 9000)
            )
        },
        atEnd("F43 416 at EOF") { MisbehavingResponse(honest: MisbehavingServer.a, to: $0) },
        atEnd("F43 416 at EOF without a tag") { question in
            MisbehavingResponse(
                honest: question.asksForRange ? MisbehavingServer.a.tagged(nil) : MisbehavingServer.a, to: question)
        },
        atEnd("F43 416 at EOF of another size") { question in
            let answer = MisbehavingResponse(honest: MisbehavingServer.a, to: question)
            return answer.status == 416 ? answer.with("Content-Range", "bytes */\(MisbehavingServer.size + 1)") : answer
        },
        atEnd("F43 416 at EOF of what is here, under another tag", versions: [MisbehavingServer.b]) {
            guard $0.asksForRange else { return MisbehavingResponse(whole: MisbehavingServer.b) }
            return MisbehavingResponse(
                416,
                ["Content-Range: bytes */\(MisbehavingServer.size)", "ETag: \(MisbehavingServer.b.entityTag ?? "")"])
        },
        atEnd("F43 200 at EOF", versions: [MisbehavingServer.a, MisbehavingServer.b]) { _ in
            MisbehavingResponse(whole: MisbehavingServer.b)
        },
        // F44
        bending("F44 gzip on a 206") { answer, _ in answer.set("Content-Encoding", "gzip") },
        bending("F44 gzip on a 200 in place of a 206") { answer, _ in
            answer = MisbehavingResponse(200, ["Content-Encoding: gzip"], text: "\u{1F}not really")
        },
        bending("F44 gzip on a 206 of a .gz") { answer, _ in answer.set("Content-Encoding", "gzip") }
            .but { $0.path = "/f.gz" },
        Lie("F44 gzip on all answers of a .gz") { question in
            MisbehavingResponse(honest: MisbehavingServer.a, to: question, fields: ["Content-Encoding: gzip"])
        }.but { $0.path = "/f.tar.gz" },
        Lie("F44 gzip on all answers", versions: [], failures: [.truncated]) { question in
            MisbehavingResponse(whole: MisbehavingServer.a, fields: ["Content-Encoding: gzip"])
        },
        // F45
        Lie("F45 If-Range with a tag unsupported: always 200 to it") { question in
            if question.ifRange != nil { return MisbehavingResponse(whole: MisbehavingServer.a) }
            let answer = MisbehavingResponse(honest: MisbehavingServer.a, to: question)
            return question.number == 0 && !question.asksForRange
                ? answer.cut(after: MisbehavingServer.firstCut) : answer
        },
        Lie("F45 If-Range with a tag unsupported, and the first answers cut") { question in
            let answer =
                question.ifRange != nil
                ? MisbehavingResponse(whole: MisbehavingServer.a)
                : MisbehavingResponse(honest: MisbehavingServer.a, to: question)
            return question.number < 4 ? answer.cut(after: MisbehavingServer.firstCut / 4) : answer
        },
        bending("F40 200 with a fitting Content-Range and no tag, of another version") { answer, question in
            guard let range = question.range(of: MisbehavingServer.size) else { return }
            answer.status = 200
            answer.set("ETag", nil)
            answer.body = [.content(MisbehavingServer.b, range, rate: MisbehavingResponse.rate)]
        },
        // Other responses.
        bending("204 to a range") { answer, question in if question.rangesBefore < 3 { answer = noContent(204) } },
        bending("205 to a range") { answer, question in if question.rangesBefore < 3 { answer = noContent(205) } },
        bending("412 to a range") { answer, _ in answer = MisbehavingResponse(412) },
        bending("Accept-Ranges: none on parts") { answer, _ in answer.set("Accept-Ranges", "none") },
        Lie("F72 206 of the whole to all who ask for no range") { question in
            var answer = MisbehavingResponse(honest: MisbehavingServer.a, to: question)
            if !question.asksForRange {
                answer.status = 206
                answer.set("Content-Range", "bytes 0-\(MisbehavingServer.size - 1)/\(MisbehavingServer.size)")
            }
            return answer
        },
        Lie("F72 206 of half to all who ask for no range", versions: [], failures: [.remoteChanged]) { question in
            var answer = MisbehavingResponse(honest: MisbehavingServer.a, to: question)
            if !question.asksForRange {
                answer = answer.cut(after: MisbehavingServer.size / 2, .open)
                answer.status = 206
                answer.set("Content-Length", "\(MisbehavingServer.size / 2)")
                answer.set("Content-Range", "bytes 0-\(MisbehavingServer.size / 2 - 1)/\(MisbehavingServer.size)")
            }
            return answer
        }.but { $0.lives = [.fresh] },
    ]

    private static func noContent(_ status: Int) -> MisbehavingResponse {
        // Only a 204 ends with its head (RFC 9112, section 6.3).
        var answer = MisbehavingResponse(status)
        if status == 204 { answer.remove("Content-Length") }
        return answer
    }

    private static func shorten(
        _ answer: inout MisbehavingResponse, _ question: MisbehavingServer.Question, _ count: (Int64) -> Int64
    ) {
        guard let range = question.range(of: MisbehavingServer.size) else { return }
        let end = range.lowerBound + min(count(Int64(range.count)), Int64(range.count))
        answer.set("Content-Range", "bytes \(range.lowerBound)-\(end - 1)/\(MisbehavingServer.size)")
        answer.set("Content-Length", "\(end - range.lowerBound)")
        answer.body = [.content(MisbehavingServer.a, range.lowerBound..<end, rate: MisbehavingResponse.rate)]
    }

    @Test("a download is right or fails, whatever comes for a range", .timeLimit(.minutes(20)), arguments: lies)
    func withstands(lie: Lie) async { await withstand(lie) }
}
