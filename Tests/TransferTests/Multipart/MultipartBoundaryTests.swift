import Testing

@testable import Transfer

@Suite("Boundaries of multipart bodies (RFC 2046, section 5.1.1)")
struct MultipartBoundaryTests {
    @Test("a random one has sixteen digits behind its prefix, and comes only once")
    func random() {
        let boundaries = (0..<1000).map { _ in MultipartBoundary() }
        #expect(Set(boundaries.map(\.text)).count == boundaries.count)
        for boundary in boundaries {
            #expect(boundary.text.hasPrefix("dld.boundary."))
            let digits = boundary.text.dropFirst("dld.boundary.".count)
            #expect(digits.utf8.count == 16)
            #expect(digits.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) })
            #expect(boundary.parameter == "boundary=\(boundary.text)")
        }
    }

    @Test(
        "one that is given is quoted where it has to be",
        arguments: [
            ("a", "boundary=a"), ("'+_-.0Z", "boundary='+_-.0Z"),
            ("gc0pJq0M:08jU534c0p", "boundary=\"gc0pJq0M:08jU534c0p\""),
            ("a b", "boundary=\"a b\""), ("()+_,-./:=?", "boundary=\"()+_,-./:=?\""),
        ])
    func given(text: String, parameter: String) throws {
        #expect(try MultipartBoundary(text).parameter == parameter)
        #expect(try MultipartBoundary(String(repeating: "x", count: 70)).text.count == 70)
    }

    @Test(
        "what RFC 2046 does not allow is refused",
        arguments: [
            "", "a ", " ", "a\"b", "a\r\nb", "a\nb", "a\\b", "ä", "a;b", "a\u{0}", String(repeating: "x", count: 71),
        ])
    func refusals(text: String) {
        let error = #expect(throws: TransferError.self) { try MultipartBoundary(text) }
        #expect(error?.code == .invalidRequest)
    }
}
