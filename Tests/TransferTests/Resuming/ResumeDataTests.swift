import FoundationEssentials
import Testing

@testable import Transfer

@Suite("Resume data")
struct ResumeDataTests {
    @Test("what is kept is what comes back")
    func roundTrip() {
        let validator = ResourceValidator(entityTag: "\"é\\\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
        for total in [nil, 0, Int64.max] {
            let data = ResumeData(
                generation: "owner-1", resource: "r", ranges: ByteRangeSet([0..<5, 9..<12]),
                version: ResourceVersion(
                    validator: validator, origin: "o", total: total, suggestedFileName: "a \"name\""))
            #expect(ResumeData(bytes: data.bytes) == data)
        }
    }

    @Test(
        "what is no resume data, or of another form, is none",
        arguments: [
            "", "{}", "[]", "null", "\u{0}", "{\"form\":1}",
            #"{"form":2,"generation":"g","ranges":[0,5],"validator":{"isDateStrong":false}}"#,
            #"{"form":1,"generation":"g","ranges":"x","validator":{"isDateStrong":false}}"#,
            #"{"form":1,"generation":"g","ranges":[0,99999999999999999999],"validator":{"isDateStrong":false}}"#,
        ])
    func garbage(text: String) {
        #expect(ResumeData(bytes: Array(text.utf8)) == nil)
    }

    @Test("every beginning of resume data is none")
    func truncated() {
        let data = ResumeData(
            generation: "g", resource: "r", ranges: ByteRangeSet([0..<5]),
            version: ResourceVersion(validator: ResourceValidator(entityTag: "\"a\""), total: 9))
        for length in 0..<data.bytes.count { #expect(ResumeData(bytes: Array(data.bytes[..<length])) == nil) }
    }

    @Test("what a daemon of old kept is read, and what one keeps today has no more in it")
    func formOne() throws {
        let kept =
            #"{"form":1,"generation":"o-1","origin":"ab","ranges":[0,5],"resource":"ab","suggestedFileName":"n","#
            + #""total":9,"validator":{"entityTag":"\"a\"","isDateStrong":false}}"#
        let data = try #require(ResumeData(bytes: Array(kept.utf8)))
        #expect(data.generation == "o-1" && data.ranges.contiguousEnd == 5 && data.total == 9)
        #expect(data.validator.entityTag == "\"a\"" && !data.isSelfSufficient)
        let keys = try JSONDecoder().decode([String: Anything].self, from: Data(data.bytes)).keys
        #expect(
            Set(keys) == [
                "form", "generation", "origin", "ranges", "resource", "suggestedFileName", "total", "validator",
            ])
    }

    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }

    private func sufficient(_ change: (inout DownloadDecision) -> Void = { _ in }) throws -> ResumeData {
        var decision = try DownloadDecision(
            path: "/srv/f.iso", options: [.removePreviousFile], isPrivate: true)
        change(&decision)
        let record = DownloadRecord(
            request: RecordedRequest(TransferRequest(url: "http://h/f")), decision: decision)
        return ResumeData(
            generation: "o-1", resource: "ab", ranges: ByteRangeSet([0..<5]), version: ResourceVersion(total: 9),
            record: record)
    }

    @Test("what suffices by itself is what comes back, too")
    func sufficientRoundTrip() throws {
        let data = try sufficient()
        let read = try #require(ResumeData(bytes: data.bytes))
        #expect(read == data && read.isSelfSufficient)
        #expect(read.path == "/srv/f.iso" && read.request?.url == "http://h/f")
        for length in stride(from: 0, to: data.bytes.count, by: 7) {
            #expect(ResumeData(bytes: Array(data.bytes[..<length])) == nil)
        }
    }

    @Test("resume data that somebody changed lead to no file but a part")
    func tampered() throws {
        let changes: [(inout DownloadDecision) -> Void] = [
            { $0.partName = "../.x.part" }, { $0.partName = "passwd" }, { $0.partName = ".x" }, { $0.partName = "" },
            { $0.partName = ".a\u{0}.part" }, { $0.partName = "." + String(repeating: "a", count: 250) + ".part" },
            { $0.name = ".." }, { $0.name = "a/b" }, { $0.name = "" }, { $0.directory = "srv" }, { $0.directory = "" },
            { $0.directory = "/a\u{0}b" }, { $0.owner = "" }, { $0.owner = String(repeating: "o", count: 65) },
            { $0.directory = "/" + String(repeating: "a", count: 5000) },
        ]
        for change in changes { #expect(ResumeData(bytes: try sufficient(change).bytes) == nil) }
    }
}
