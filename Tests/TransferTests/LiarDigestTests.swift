import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: wrong bytes under right heads")
struct LiarDigestTests {
    private static func honest(_ question: Liar.Question) -> LiarAnswer { LiarAnswer(honest: Liar.a, to: question) }

    /// The first answer breaks off, so that there is something to ask again.
    private static func first(_ question: Liar.Question) -> LiarAnswer {
        question.number == 0 ? honest(question).cut(after: honest(question).length * 6 / 10) : honest(question)
    }

    private static func corrupted(
        _ name: String, versions: [Resource] = [Liar.a], _ answer: @escaping Liar.Answering
    ) async throws -> Lie {
        let digest = try await Self.digest.value
        return Lie("F47 " + name, versions: versions, failures: [.checksumMismatch], answer).but { $0.digest = digest }
    }

    /// Of the first version.
    private static let digest = Task {
        let directory = try TemporaryDirectory()
        try Liar.a.write(to: directory.file("a"))
        let process = try ChildProcess(["sha256sum", directory.file("a")])
        _ = try await process.wait()
        return FileDigest(algorithm: .sha256, hex: String(process.standardOutput.prefix(64)))
    }

    @Test("F47: with a digest known, wrong bytes never get the name, however they came", .timeLimit(.minutes(20)))
    func digests() async throws {
        let offsets = [Liar.size / 10, Liar.size * 7 / 10, Liar.size - 1]
        for offset in offsets {
            let once = try await Self.corrupted("a bit is flipped at \(offset) in the first two answers") { question in
                question.number < 2 ? Self.first(question).flippingBit(at: offset) : Self.honest(question)
            }
            await withstand(once)
            let always = try await Self.corrupted("a bit is flipped at \(offset) always", versions: []) { question in
                Self.honest(question).flippingBit(at: offset)
            }
            // What came in an honest life is right, and so may be the whole.
            await withstand(always.but { $0.lives = [Lie.Life.fresh] })
            await withstand(
                always.but { lie in
                    lie.lives = [Lie.Life.resumed]
                    lie.versions = [Liar.a]
                })
        }
        let other = Liar.b.tagged(Liar.a.entityTag)
        await withstand(
            try await Self.corrupted("other bytes under the same tag") { question in
                question.number < 2 ? Self.first(question) : LiarAnswer(honest: other, to: question)
            })
        await withstand(
            try await Self.corrupted("parts are taken from the front") { question in
                var answer = Self.first(question)
                if answer.isPart { answer.body = [.content(Liar.a, 0..<answer.length, rate: LiarAnswer.rate)] }
                return answer
            })
        await withstand(
            try await Self.corrupted("a body that the connection's end ends is cut") { question in
                var answer = LiarAnswer(whole: Liar.a).cut(after: Liar.firstCut).with("Content-Length", nil)
                answer.version = "HTTP/1.0"
                return answer
            }.but { $0.failures = [.checksumMismatch, .truncated, .remoteChanged] })
        await withstand(try await Self.corrupted("nothing is wrong") { Self.first($0) }.but { $0.failures = [] })
    }
}
