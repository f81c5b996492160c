import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: everything at once")
struct MisbehavingServerChaosTests {
    /// The possible modifications of an honest response.
    private enum Bend: CaseIterable {
        case whole, early, late, longer, noRange, wrongTotal, wrongLength, otherTag, noTag, short, tiny
        case chunked, cut, reset, stall, overlong, is200, coded, empty, is416, is412, is503, is429, silent, garbage
    }

    /// The number of requests within which half of the responses are modified.
    private static let bentRequests = 60

    private static func answer(_ question: MisbehavingServer.Question, seed: UInt64, of resource: Resource)
        -> MisbehavingResponse
    {
        var generator = SeededGenerator(seed: seed &* 10_000 &+ UInt64(question.number))
        var answer = MisbehavingResponse(honest: resource, to: question)
        guard question.number < bentRequests, Bool.random(using: &generator),
            let bend = Bend.allCases.randomElement(using: &generator)
        else { return answer }
        let place = answer.length > 1 ? Int64.random(in: 1..<answer.length, using: &generator) : 0
        let range = question.range(of: resource.size) ?? 0..<resource.size

        func part(_ range: Range<Int64>) {
            guard answer.isPart else { return }
            answer.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(resource.size)")
            answer.set("Content-Length", "\(range.count)")
            answer.body = [.content(resource, range, rate: MisbehavingResponse.rate)]
        }

        switch bend {
        case .whole: return MisbehavingResponse(whole: resource)
        case .early: part(max(0, range.lowerBound - place)..<range.upperBound)
        case .late: part(min(range.lowerBound + place, range.upperBound - 1)..<range.upperBound)
        case .longer: part(range.lowerBound..<min(range.upperBound + place, resource.size))
        case .short: part(range.lowerBound..<max(range.lowerBound + 1, range.upperBound - place))
        case .tiny: part(range.lowerBound..<(range.lowerBound + 1))
        case .noRange: answer.set("Content-Range", nil)
        case .wrongTotal:
            if answer.isPart {
                answer.set(
                    "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(resource.size + place + 1)")
            }
        case .wrongLength: answer.set("Content-Length", "\(answer.length + place)")
        case .otherTag: answer.set("ETag", "\"\(place)\"")
        case .noTag: answer.set("ETag", nil)
        case .chunked: return answer.chunked()
        case .cut: return answer.cut(after: place)
        case .reset: return answer.cut(after: place, .reset)
        case .stall: return answer.cut(after: place, .hang)
        case .overlong:
            answer.body.append(.bytes([1, 2, 3]))
            answer.ending = .close
        case .is200: answer.status = 200
        case .coded: if answer.isPart { answer.set("Content-Encoding", "gzip") }
        case .empty: return MisbehavingResponse(answer.isPart ? 204 : 503)
        case .is416: if answer.isPart { return MisbehavingResponse(416, ["Content-Range: bytes */\(place)"]) }
        case .is412: if answer.isPart { return MisbehavingResponse(412) }
        case .is503: return MisbehavingResponse(503, text: "no")
        case .is429: return MisbehavingResponse(429, ["Retry-After: 1"])
        case .silent: return .raw([], .close)
        case .garbage: return .raw([.raw(Array("\u{1}\u{2}\u{3}\r\n\r\n".utf8))])
        }
        return answer
    }

    /// Returns a lie whose bytes are always of one version, whatever the tag.
    private static func chaos(_ seed: UInt64) -> Lie {
        Lie("chaos \(seed)", failures: [.truncated, .remoteChanged, .httpStatus, .cannotConnect, .stalled, .internal]) {
            answer($0, seed: seed, of: MisbehavingServer.a)
        }.but { $0.mostRequests = 2_000 }
    }

    /// Returns a lie in which the version changes too.
    private static func flux(_ seed: UInt64) -> Lie {
        Lie(
            "flux \(seed)", versions: [MisbehavingServer.a, MisbehavingServer.b, MisbehavingServer.longer],
            failures: [.truncated, .remoteChanged, .httpStatus, .cannotConnect, .stalled, .internal]
        ) { question in
            let version = [MisbehavingServer.a, MisbehavingServer.b, MisbehavingServer.longer][
                Int(mixing(seed, question.number / 4) % 3)]
            var answer = answer(question, seed: seed &+ 777, of: version)
            // A missing tag, or one of another version, would be a lie that only a digest detects.
            if answer.isPart || answer.status == 200 { answer.set("ETag", version.entityTag) }
            return answer
        }.but { $0.mostRequests = 2_000 }
    }

    private static func mixing(_ seed: UInt64, _ number: Int) -> UInt64 {
        var generator = SeededGenerator(seed: seed &* 31 &+ UInt64(number))
        return generator.next()
    }

    /// The seeds to test; `LIAR_SEEDS=13-100` selects others.
    private static let seeds: ClosedRange<UInt64> = {
        let words =
            getenv("LIAR_SEEDS").map { String(cString: $0).split(separator: "-").compactMap { UInt64($0) } } ?? []
        return words.count == 2 && words[0] <= words[1] ? words[0]...words[1] : 1...8
    }()

    static let lies = seeds.map { chaos($0) } + seeds.map { flux($0) }

    @Test("a download is right or fails, whatever comes in which order", .timeLimit(.minutes(30)), arguments: lies)
    func withstands(lie: Lie) async { await withstand(lie) }
}
