import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: versions that change")
struct MisbehavingServerVersionTests {
    /// The version of the resource with which a request is answered.
    private typealias Choice = @Sendable (MisbehavingServer.Question) -> Resource

    private static let both = [MisbehavingServer.a, MisbehavingServer.b]

    /// Returns a lie that chooses a version for each request and is honest about it, with `fields` in each response;
    /// the first response is cut.
    private static func choosing(
        _ name: String, of versions: [Resource] = both, before: Resource = MisbehavingServer.a,
        fields: @escaping @Sendable (Resource) -> [String] = { _ in [] }, isCut: Bool = true, _ choice: @escaping Choice
    ) -> Lie {
        Lie(name, versions: versions) { question in
            let version = choice(question)
            let answer = MisbehavingResponse(honest: version, to: question, fields: fields(version))
            return isCut && question.number == 0 ? answer.cut(after: answer.length * 6 / 10) : answer
        }.but { $0.before = { MisbehavingResponse(honest: before, to: $0, fields: fields(before)) } }
    }

    /// Returns a lie like `choosing` in which the response to a range is of the chosen version, whatever `If-Range`
    /// says.
    private static func ignoringConditions(
        _ name: String, of versions: [Resource] = both,
        fields: @escaping @Sendable (Resource) -> [String] = { _ in [] },
        isBare: Bool = false, _ choice: @escaping Choice
    ) -> Lie {
        Lie(name + ", If-Range ignored", versions: versions) { question in
            let version = choice(question)
            var answer = MisbehavingResponse(
                honest: version, to: question, fields: fields(version), ignoresCondition: true)
            if isBare, answer.isPart { answer.set("ETag", nil) }
            return question.number == 0 ? answer.cut(after: answer.length * 6 / 10) : answer
        }.but { lie in
            let before = versions[0]
            lie.before = { MisbehavingResponse(honest: before, to: $0, fields: fields(before)) }
        }
    }

    /// Returns a lie with two versions under the given tags, of which the second is sent from the second request on.
    private static func changed(
        _ name: String, _ first: String?, _ second: String?, to other: Resource = MisbehavingServer.b,
        fields: @escaping @Sendable (Resource) -> [String] = { _ in [] }
    ) -> Lie {
        let (before, after) = (MisbehavingServer.a.tagged(first), other.tagged(second))
        return choosing(name, of: [before, after], before: before, fields: fields) { $0.number == 0 ? before : after }
            // An earlier life received the first version, which no longer exists.
            .but { lie in
                let answering = lie.answering
                lie.answering = { liar in
                    let answer = answering(liar)
                    return { question in
                        let isLater = liar.requests.count > question.number + 1
                        return isLater
                            ? MisbehavingResponse(honest: after, to: question, fields: fields(after)) : answer(question)
                    }
                }
            }
    }

    /// Returns the resource with zeros in the middle, like a half-empty disk image: zeros surround every offset at
    /// which a life of these tests ends.
    private static func blank(_ resource: Resource) -> Resource {
        var resource = resource
        resource.zeros = MisbehavingServer.size / 4..<MisbehavingServer.size * 3 / 4
        return resource
    }

    private static let isFirst: @Sendable (Resource) -> Bool = { $0.seed == MisbehavingServer.a.seed }
    private static let old = "Wed, 01 Jan 2020 00:00:00 GMT"
    private static let new = "Thu, 02 Jan 2020 00:00:00 GMT"
    private static let now = "Fri, 01 Jan 2021 00:00:00 GMT"

    static let lies: [Lie] =
        [
            // F36, F37
            changed("F36 changed", "\"1\"", "\"2\""),
            changed("F36 changed, and longer", "\"1\"", "\"2\"", to: MisbehavingServer.longer),
            changed(
                "F36 changed, and shorter than what is here", "\"1\"", "\"2\"", to: Resource(size: 1_000_000, seed: 7)),
            changed("F36 changed, and empty", "\"1\"", "\"2\"", to: Resource(size: 0, seed: 7)),
            changed("F37 changed-weak", "W/\"1\"", "W/\"2\""),
            changed("F37 changed-weak, the tag stayed", "W/\"1\"", "W/\"1\""),
            changed("F37 changed-noetag", nil, nil),
            changed("F37 changed-noetag, and longer", nil, nil, to: MisbehavingServer.longer),
            changed("F37 the tag vanished", "\"1\"", nil),
            changed("F37 the tag appeared", nil, "\"1\""),
            changed("F37 a strong tag turned weak", "\"1\"", "W/\"1\""),
            changed("F37 a tag that could not be sent back", "\"1", "\"1"),
            changed("F37 strong dates", nil, nil) { version in
                ["Last-Modified: \(isFirst(version) ? old : new)", "Date: \(now)"]
            },
            changed("F37 weak dates") { version in
                let date = isFirst(version) ? old : new
                return ["Last-Modified: \(date)", "Date: \(date)"]
            },
            changed("F37 weak dates that stayed") { _ in ["Last-Modified: \(old)", "Date: \(old)"] },
            changed("F37 dates without a Date") { version in ["Last-Modified: \(isFirst(version) ? old : new)"] },
            // A file that does not change, under each kind of validator.
            choosing("weak tag", of: [MisbehavingServer.a], before: MisbehavingServer.a.tagged("W/\"1\"")) { _ in
                MisbehavingServer.a.tagged("W/\"1\"")
            },
            choosing("no validator", of: [MisbehavingServer.a], before: MisbehavingServer.a.tagged(nil)) { _ in
                MisbehavingServer.a.tagged(nil)
            },
            choosing(
                "strong date", of: [MisbehavingServer.a], before: MisbehavingServer.a.tagged(nil),
                fields: { _ in ["Last-Modified: \(old)", "Date: \(now)"] }
            ) { _ in MisbehavingServer.a.tagged(nil) },
            choosing(
                "weak date", of: [MisbehavingServer.a], before: MisbehavingServer.a.tagged(nil),
                fields: { _ in ["Last-Modified: \(old)", "Date: \(old)"] }
            ) { _ in MisbehavingServer.a.tagged(nil) },
            choosing(
                "weak tag and strong date", of: [MisbehavingServer.a], before: MisbehavingServer.a.tagged("W/\"1\""),
                fields: { _ in ["Last-Modified: \(old)", "Date: \(now)"] }
            ) { _ in MisbehavingServer.a.tagged("W/\"1\"") },
            // F38
            choosing("F38 every request another version of two") {
                $0.number.isMultiple(of: 2) ? MisbehavingServer.a : MisbehavingServer.b
            },
            choosing("F38 every request another version of two, without tags", before: MisbehavingServer.a.tagged(nil))
            {
                ($0.number.isMultiple(of: 2) ? MisbehavingServer.a : MisbehavingServer.b).tagged(nil)
            },
            choosing(
                "F38 every request a new version",
                of: [MisbehavingServer.a] + (100..<400).map { Resource(size: MisbehavingServer.size, seed: $0) }
            ) { Resource(size: MisbehavingServer.size, seed: UInt64(100 + $0.number)) },
            choosing("F38 there and back again") {
                (3..<6).contains($0.number) ? MisbehavingServer.b : MisbehavingServer.a
            },
            choosing("F38 another size from the third request on", of: [MisbehavingServer.a, MisbehavingServer.longer])
            {
                $0.number < 2 ? MisbehavingServer.a : MisbehavingServer.longer
            },
            choosing(
                "F38 the size grows, the tag stays",
                of: [MisbehavingServer.a, MisbehavingServer.longer.tagged(MisbehavingServer.a.entityTag)]
            ) {
                $0.number < 2 ? MisbehavingServer.a : MisbehavingServer.longer.tagged(MisbehavingServer.a.entityTag)
            },
            ignoringConditions("F36 changed") {
                $0.number == 0 && !$0.asksForRange ? MisbehavingServer.a : MisbehavingServer.b
            },
            ignoringConditions(
                "F36 changed to a weak tag", of: [MisbehavingServer.a, MisbehavingServer.b.tagged("W/\"2\"")]
            ) {
                $0.number == 0 && !$0.asksForRange ? MisbehavingServer.a : MisbehavingServer.b.tagged("W/\"2\"")
            },
            ignoringConditions(
                "F36 changed, and longer, parts without tags", of: [MisbehavingServer.a, MisbehavingServer.longer],
                isBare: true
            ) {
                $0.number == 0 && !$0.asksForRange ? MisbehavingServer.a : MisbehavingServer.longer
            },
            ignoringConditions(
                "F36 changed under strong dates",
                of: [MisbehavingServer.a.tagged(nil), MisbehavingServer.b.tagged(nil)],
                fields: { ["Last-Modified: \(isFirst($0) ? old : new)", "Date: \(now)"] }
            ) {
                $0.number == 0 && !$0.asksForRange ? MisbehavingServer.a.tagged(nil) : MisbehavingServer.b.tagged(nil)
            },
            ignoringConditions(
                "F36 changed under the same tag, the date tells",
                of: [MisbehavingServer.a.tagged("\"1\""), MisbehavingServer.b.tagged("\"1\"")],
                fields: { ["Last-Modified: \(isFirst($0) ? old : new)", "Date: \(now)"] }
            ) { ($0.number == 0 && !$0.asksForRange ? MisbehavingServer.a : MisbehavingServer.b).tagged("\"1\"") },
            ignoringConditions("F36 changed, parts without tags", isBare: true) {
                $0.number == 0 && !$0.asksForRange ? MisbehavingServer.a : MisbehavingServer.b
            },
            ignoringConditions("F38 changed with the third request, parts without tags", isBare: true) {
                $0.number < 2 ? MisbehavingServer.a : MisbehavingServer.b
            },
            changed("F37 changed-noetag, and the same zeros around the seam", nil, nil, to: blank(MisbehavingServer.b))
                .but { lie in
                    let (before, after) = (
                        blank(MisbehavingServer.a).tagged(nil), blank(MisbehavingServer.b).tagged(nil)
                    )
                    lie.versions = [before, after]
                    lie.before = { MisbehavingResponse(honest: before, to: $0) }
                    lie.answering = { liar in
                        { question in
                            let isLater = liar.requests.count > 1
                            let answer = MisbehavingResponse(honest: isLater ? after : before, to: question)
                            return isLater ? answer : answer.cut(after: answer.length * 6 / 10)
                        }
                    }
                },
            ignoringConditions("F38 every request another version of two") {
                $0.number.isMultiple(of: 2) ? MisbehavingServer.a : MisbehavingServer.b
            },
            ignoringConditions("F38 there and back again") {
                (2..<5).contains($0.number) ? MisbehavingServer.b : MisbehavingServer.a
            },
            ignoringConditions("F46 two backends, other bytes, by connection") {
                [MisbehavingServer.a, MisbehavingServer.b][$0.connection % 2]
            },
            ignoringConditions(
                "F46 two backends, other sizes, by connection", of: [MisbehavingServer.a, MisbehavingServer.longer]
            ) {
                [MisbehavingServer.a, MisbehavingServer.longer][$0.connection % 2]
            },
            // F46
            choosing(
                "F46 two backends, same bytes, by request", of: [MisbehavingServer.a],
                before: MisbehavingServer.a.tagged("\"0\"")
            ) {
                MisbehavingServer.a.tagged("\"\($0.number % 2)\"")
            },
            choosing(
                "F46 two backends, same bytes, by connection", of: [MisbehavingServer.a],
                before: MisbehavingServer.a.tagged("\"0\"")
            ) {
                MisbehavingServer.a.tagged("\"\($0.connection % 2)\"")
            },
            choosing("F46 two backends, other bytes, by connection") {
                [MisbehavingServer.a, MisbehavingServer.b][$0.connection % 2]
            },
            choosing(
                "F46 two backends, other sizes, by connection", of: [MisbehavingServer.a, MisbehavingServer.longer]
            ) {
                [MisbehavingServer.a, MisbehavingServer.longer][$0.connection % 2]
            },
            choosing("F46 two backends, one without ranges", of: [MisbehavingServer.a]) { _ in MisbehavingServer.a }.but
            { lie in
                lie.answering = { _ in
                    {
                        $0.number.isMultiple(of: 2)
                            ? MisbehavingResponse(honest: MisbehavingServer.a, to: $0)
                            : MisbehavingResponse(whole: MisbehavingServer.a)
                    }
                }
            },
            choosing("F46 two backends, same bytes, and all answers cut", of: [MisbehavingServer.a]) { _ in
                MisbehavingServer.a
            }.but { lie in
                lie.failures = [.truncated, .remoteChanged]
                // Each attempt finds out anew that several connections bring two versions.
                lie.mostRequests = 400
                lie.answering = { _ in
                    { question in
                        let answer = MisbehavingResponse(
                            honest: MisbehavingServer.a.tagged("\"\(question.number % 2)\""), to: question)
                        return answer.cut(after: answer.length * 6 / 10)
                    }
                }
            },
        ]
        + (1...6).map { count in
            choosing("F38 flips after \(count) requests") {
                $0.number < count ? MisbehavingServer.a : MisbehavingServer.b
            }
        }
        + (1...6).map { count in
            choosing("F38 flips after \(count) requests, uncut", isCut: false) {
                $0.number < count ? MisbehavingServer.a : MisbehavingServer.b
            }
        }
        + (1...6).map { count in
            ignoringConditions("F38 flips after \(count) requests") {
                $0.number < count ? MisbehavingServer.a : MisbehavingServer.b
            }
        }
        + (2...4).map { count in
            choosing("F38 flips after \(count) requests, weak tags", before: MisbehavingServer.a.tagged("W/\"1\"")) {
                $0.number < count ? MisbehavingServer.a.tagged("W/\"1\"") : MisbehavingServer.b.tagged("W/\"2\"")
            }
        }

    private static func changed(
        _ name: String, fields: @escaping @Sendable (Resource) -> [String]
    ) -> Lie { changed(name, nil, nil, fields: fields) }

    @Test("a download is of one version or fails", .timeLimit(.minutes(20)), arguments: lies)
    func withstands(lie: Lie) async { await withstand(lie) }
}
