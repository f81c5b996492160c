import Crypto
import FoundationEssentials
import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: wrong bytes under right heads")
struct MisbehavingServerDigestTests {
    private static func honest(_ question: MisbehavingServer.Question) -> MisbehavingResponse {
        MisbehavingResponse(honest: MisbehavingServer.a, to: question)
    }

    /// Cuts the first response, so that a second request is needed.
    private static func first(_ question: MisbehavingServer.Question) -> MisbehavingResponse {
        question.number == 0 ? honest(question).cut(after: honest(question).length * 6 / 10) : honest(question)
    }

    private static func corrupted(
        _ name: String, versions: [Resource] = [MisbehavingServer.a], _ answer: @escaping MisbehavingServer.Answering
    ) -> Lie {
        let digest = Self.digest
        return Lie("F47 " + name, versions: versions, failures: [.checksumMismatch], answer).but { $0.digest = digest }
    }

    private static func digested(_ resource: Resource) -> ModelDigest {
        let digest = FileDigest(algorithm: .sha256, bytes: SHA256.hash(data: resource.bytes))
        return ModelDigest(digest: digest, resource: resource)
    }

    /// The digests of both versions.
    static let known = [digested(MisbehavingServer.a), digested(MisbehavingServer.b)]
    /// The digest of the first version.
    private static let digest = known[0].digest

    private static func stated(_ resource: Resource) -> String {
        "Repr-Digest: sha-256=:\(Data(SHA256.hash(data: resource.bytes)).base64EncodedString()):"
    }

    private static let (statedA, statedB) = (stated(MisbehavingServer.a), stated(MisbehavingServer.b))

    /// Lies about files whose digest the destination has.
    static let corruptions: [Lie] = {
        var lies: [Lie] = []
        let offsets = [MisbehavingServer.size / 10, MisbehavingServer.size * 7 / 10, MisbehavingServer.size - 1]
        for offset in offsets {
            let once = Self.corrupted("a bit is flipped at \(offset) in the first two answers") { question in
                question.number < 2 ? Self.first(question).flippingBit(at: offset) : Self.honest(question)
            }
            lies.append(once)
            let always = Self.corrupted("a bit is flipped at \(offset) always", versions: []) { question in
                Self.honest(question).flippingBit(at: offset)
            }
            // The bytes from an honest earlier life are right, and so may be the whole file.
            lies.append(always.but { $0.lives = [Lie.Life.fresh] })
            lies.append(
                always.but { lie in
                    lie.lives = [Lie.Life.resumed]
                    lie.versions = [MisbehavingServer.a]
                })
        }
        let other = MisbehavingServer.b.tagged(MisbehavingServer.a.entityTag)
        lies.append(
            Self.corrupted("other bytes under the same tag") { question in
                question.number < 2 ? Self.first(question) : MisbehavingResponse(honest: other, to: question)
            })
        lies.append(
            Self.corrupted("parts are taken from the front") { question in
                var answer = Self.first(question)
                if answer.isPart {
                    answer.body = [.content(MisbehavingServer.a, 0..<answer.length, rate: MisbehavingResponse.rate)]
                }
                return answer
            })
        lies.append(
            Self.corrupted("a body that the connection's end ends is cut") { question in
                var answer = MisbehavingResponse(whole: MisbehavingServer.a).cut(after: MisbehavingServer.firstCut)
                    .with("Content-Length", nil)
                answer.version = "HTTP/1.0"
                return answer
            }.but { $0.failures = [.checksumMismatch, .truncated, .remoteChanged] })
        lies.append(Self.corrupted("nothing is wrong") { Self.first($0) }.but { $0.failures = [] })
        // If the bytes can be verified at the end, several connections are used for a file without a strong tag too.
        for tag in [nil, "W/\"1\""] {
            let (one, other) = (MisbehavingServer.a.tagged(tag), MisbehavingServer.b.tagged(tag))
            lies.append(
                Self.corrupted("nothing is wrong, under \(tag ?? "no tag")") { question in
                    let answer = MisbehavingResponse(honest: one, to: question)
                    return question.number == 0 ? answer.cut(after: answer.length * 6 / 10) : answer
                }.but { lie in
                    lie.failures = []
                    lie.before = { MisbehavingResponse(honest: one, to: $0) }
                })
            lies.append(
                Self.corrupted("another version for a while, under \(tag ?? "no tag")") { question in
                    let answer = MisbehavingResponse(
                        honest: (1..<5).contains(question.number) ? other : one, to: question)
                    return question.number < 5 ? answer.cut(after: answer.length * 6 / 10) : answer
                }.but { $0.before = { MisbehavingResponse(honest: one, to: $0) } })
        }
        return lies
    }()

    /// Lies of servers that state a digest.
    static let statements: [Lie] = {
        var lies: [Lie] = []
        func stating(
            _ name: String, versions: [Resource], failures: Set<TransferError.Code> = [],
            _ choice: @escaping @Sendable (MisbehavingServer.Question) -> (Resource, String)
        ) -> Lie {
            Lie("F48 " + name, versions: versions, failures: failures) { question in
                let (version, field) = choice(question)
                let answer = MisbehavingResponse(honest: version, to: question, fields: [field], ignoresCondition: true)
                return question.number == 0 ? answer.cut(after: answer.length * 6 / 10) : answer
            }.but { lie in
                lie.before = {
                    MisbehavingResponse(
                        honest: MisbehavingServer.a.tagged(versions.first?.entityTag), to: $0, fields: [Self.statedA])
                }
            }
        }
        lies.append(stating("right", versions: [MisbehavingServer.a]) { _ in (MisbehavingServer.a, Self.statedA) })
        // Only the digest distinguishes the two versions.
        for tag in [nil, "W/\"1\"", "\"1\""] {
            let (one, other) = (MisbehavingServer.a.tagged(tag), MisbehavingServer.b.tagged(tag))
            lies.append(
                stating("changed under \(tag ?? "no tag")", versions: [one, other]) { question in
                    question.number == 0 && !question.asksForRange ? (one, Self.statedA) : (other, Self.statedB)
                })
            lies.append(
                stating(
                    "every request another version under \(tag ?? "no tag")", versions: [one, other],
                    failures: [.remoteChanged, .checksumMismatch]
                ) { question in
                    question.number.isMultiple(of: 2) ? (one, Self.statedA) : (other, Self.statedB)
                })
        }
        lies.append(
            stating("wrong", versions: [], failures: [.checksumMismatch]) { _ in (MisbehavingServer.a, Self.statedB) }
                .but { $0.lives = [Lie.Life.fresh] })
        lies.append(
            stating("wrong, and a person knows better", versions: [MisbehavingServer.a]) { _ in
                (MisbehavingServer.a, Self.statedB)
            }
            .but { $0.digest = Self.digest })
        return lies
    }()

    @Test("F47: with a digest known, wrong bytes never get the name, however they came", .timeLimit(.minutes(20)))
    func digests() async {
        for lie in Self.corruptions { await withstand(lie) }
    }

    @Test("F48: what the server states of its bytes is held against them", .timeLimit(.minutes(20)))
    func statedDigests() async {
        for lie in Self.statements { await withstand(lie) }
    }
}
