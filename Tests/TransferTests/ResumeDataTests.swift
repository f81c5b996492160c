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
}
