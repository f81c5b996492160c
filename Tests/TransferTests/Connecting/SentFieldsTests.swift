import HTTPTypes
import Testing

@testable import Transfer

@Suite("The field lines of a request")
struct SentFieldsTests {
    private func lines(
        _ fields: HTTPFields = [:], credential: Credential? = nil, additional: [String] = [], engine: [String] = [],
        isAuthorized: Bool = false
    ) -> [String] {
        var configuration = SessionConfiguration()
        configuration.userAgent = "agent"
        configuration.additionalHeaders = additional
        let request = TransferRequest(url: "http://a/", headerFields: fields, credential: credential)
        return SentFields.lines(of: request, configuration, engineFields: engine, isAuthorized: isAuthorized)
    }

    @Test("the request's own fields go before the session's, and the engine's come last")
    func order() {
        let own: HTTPFields = [.accept: "text/plain", .userAgent: "own"]
        #expect(
            lines(own, additional: ["accept: image/*", "X-A: 1"], engine: ["Range: bytes=1-"])
                == ["Accept: text/plain", "User-Agent: own", "X-A: 1", "Range: bytes=1-"])
        #expect(lines([.accept: ""]) == ["Accept;", "User-Agent: agent"])
    }

    @Test("a credential outranks the request's own field, and an answered challenge both")
    func authorization() {
        let own: HTTPFields = [.authorization: "mine"]
        #expect(lines(own).first == "Authorization: mine")
        #expect(
            lines(own, credential: .bearer("t")).filter { $0.hasPrefix("Authorization") } == ["Authorization: Bearer t"]
        )
        #expect(
            lines(own, credential: .bearer("t"), engine: ["Authorization: answer"], isAuthorized: true)
                == ["User-Agent: agent", "Authorization: answer"])
    }

    @Test("lines are read as the fields that they are; a line without a value, which removes a field, is none")
    func reading() {
        let fields = SentFields.fields(["A: b: c; d", "B;", "C:", "no line", "D : x", ": y", "A:\tz"])
        #expect(fields.map { "\($0.name)=\($0.value)" } == ["A=b: c; d", "B=", "A=z"])
    }

    @Test(
        "a line is a header field if it has a name and a colon, or a semicolon in place of a value",
        arguments: [
            ("A: b", true), ("A:b;c", true), ("A:", true), ("A;", true), ("A:\tb\tc", true), ("A: ü", true),
            ("no colon", false), ("A; ", false), ("A; b", false), (": b", false), ("", false), ("@file", false),
            ("A b: c", false), ("A: b\r\nC: d", false), ("A: b\n", false), ("A: \u{1B}[2J", false), ("A\0: b", false),
        ])
    func validity(line: String, isValid: Bool) { #expect(SentFields.isValid(line) == isValid) }

    @Test("each name is said once: a credential outranks the session's field, and its agent the default one")
    func once() {
        let session = ["Authorization: session", "user-agent: session"]
        #expect(lines(additional: session) == session)
        #expect(
            lines(credential: .bearer("t"), additional: session) == ["Authorization: Bearer t", "user-agent: session"])
        #expect(
            lines(additional: session, engine: ["Authorization: answer"], isAuthorized: true)
                == ["user-agent: session", "Authorization: answer"])
    }
}
