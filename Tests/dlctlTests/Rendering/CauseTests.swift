import TaskModel
import Testing

@testable import dlctl

@Suite struct CauseTests {
    @Test(
        "every error code has a short phrase",
        arguments: [
            ("dns", "name does not resolve"), ("connect", "cannot connect"), ("tls", "TLS error"),
            ("timeout", "connection timed out"), ("stalled", "transfer stalled"),
            ("truncated", "connection lost"), ("too-many-redirects", "too many redirects"),
            ("protocol-not-allowed", "protocol not allowed"), ("address-not-allowed", "address not allowed"),
            ("checksum-mismatch", "checksum does not match"), ("remote-changed", "file on the server changed"),
            ("not-resumable", "server cannot resume"), ("name-conflict", "file name already exists"),
            ("path-not-allowed", "path not allowed"), ("disk-full", "disk full"),
            ("permission-denied", "permission denied"), ("io", "input/output error"),
            ("source-changed", "source file changed"), ("too-large", "file too large"), ("quota", "quota exceeded"),
            ("invalid", "invalid"), ("internal", "internal error"), ("http-503", "server replied 503"),
            ("http-404", "server replied 404"), ("novel-word", "novel word"),
        ])
    func phrases(code: String, phrase: String) {
        #expect(Cause.phrase(ErrorCode(rawValue: code)) == phrase)
        #expect(Cause.phrase(TaskFailure(code: ErrorCode(rawValue: code), message: "m")) == phrase)
    }

    @Test("a source that is gone is not called changed, and a missing login not a refusal")
    func missing() {
        let gone = TaskFailure(code: .sourceChanged, message: "there is no file /f to upload")
        #expect(Cause.phrase(gone) == "source file is gone")
        #expect(Cause.phrase(pausedFor: .sourceChanged, gone) == "the source file is gone")
        #expect(Cause.phrase(pausedFor: .sourceChanged) == "the source file changed")
        let lost = TaskFailure(code: .sourceLost, message: "m")
        #expect(Cause.phrase(pausedFor: .sourceChanged, lost) == "the open source file was closed")
        let login = TaskFailure(code: .http(401), message: "the server requires a user name and password (401)")
        #expect(Cause.phrase(pausedFor: .auth, login) == "a login is needed")
        #expect(Cause.phrase(pausedFor: .auth) == "the server refuses access")
    }

    @Test(
        "a refused connection names the port",
        arguments: [
            ("port 8080 of example.org refuses the connection: is the server up?", "port 8080 refuses the connection"),
            ("the Metalink: port 80 of h refuses the connection: is it up?", "port 80 refuses the connection"),
            ("port 99999 of example.org refuses the connection", "cannot connect"),
            ("the proxy p:3128 refuses the connection: is it up?", "proxy refuses the connection"),
            ("the connection to example.org was lost before a response", "cannot connect"),
        ])
    func port(message: String, phrase: String) {
        #expect(Cause.phrase(TaskFailure(code: .connect, message: message)) == phrase)
    }
}
