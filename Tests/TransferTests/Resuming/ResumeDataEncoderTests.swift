import Testing

@testable import Transfer

@Suite("Successive resume data")
struct ResumeDataEncoderTests {
    private func resumeData(_ ranges: [Range<Int64>], name: String, generation: String = "g") -> ResumeData {
        ResumeData(
            generation: generation, resource: "r", ranges: ByteRangeSet(ranges),
            version: ResourceVersion(
                validator: ResourceValidator(entityTag: "\"a\""), total: 9, suggestedFileName: name))
    }

    @Test("one encoder's form of each decodes to the same", arguments: ["n", #""ranges":[]"#, "\u{0}\\", "ü"])
    func roundTrips(name: String) {
        var encoder = ResumeDataEncoder()
        for data in [
            resumeData([], name: name), resumeData([0..<5], name: name), resumeData([0..<5, 7..<9], name: name),
            resumeData([0..<5], name: name, generation: "h"), resumeData([0..<Int64.max], name: name),
            resumeData([1..<2], name: "other"), resumeData([0..<9], name: name),
        ] {
            let bytes = encoder.bytes(of: data)
            #expect(ResumeData(bytes: bytes) == data)
            #expect(bytes.count == data.bytes.count)
        }
    }

    @Test("a change besides the ranges is encoded")
    func mismatches() {
        var data = resumeData([0..<5], name: "n")
        var encoder = ResumeDataEncoder()
        #expect(ResumeData(bytes: encoder.bytes(of: data)) == data)
        data.mismatches = Mismatches()
        #expect(ResumeData(bytes: encoder.bytes(of: data)) == data)
    }
}
