import Curl
import Testing

@testable import Transfer

@Suite("Errors of file servers")
struct RemoteErrorTests {
    @Test("a refused login tells whether the request had one")
    func login() throws {
        let file = try RemoteFile("ftp://h/a")
        func message(hasLogin: Bool) -> String {
            TransferError.remote(
                CurlError(.loginDenied, message: "m"), file: file, reply: FTPReply(Array("530 Log in".utf8)),
                bodyBegun: false, isOpened: false, isStoring: false, hasLogin: hasLogin
            ).message
        }
        #expect(message(hasLogin: false) == "h requires a user name and password: it replied 530 Log in")
        #expect(
            message(hasLogin: true)
                == "h refuses the login: it replied 530 Log in: the user name, password or key is wrong")
    }
}
