import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Fields that state where a request ends")
struct FramingFieldTests {
    private func manager(_ headers: [String] = []) throws -> SessionManager {
        try SessionManager(
            configuration: .test {
                $0.loops = 1
                $0.additionalHeaders = headers
            })
    }

    @Test(
        "a length or a coding that contradicts the body is not sent, and the next request gets its own response",
        .timeLimit(.minutes(1)),
        arguments: ["Content-Length: 1", "Content-Length: 55", "Content-Length: 0", "Transfer-Encoding: chunked"])
    func contradictions(line: String) async throws {
        let server = try ScriptedServer(["/in": [.status(200, body: "in")], "/next": [.status(200, body: "next")]])
        let body = "aGET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
        let words = line.split(separator: ":").map { $0.drop { $0 == " " } }
        let headers = HTTPHeaders([String(words[0]): String(words[1])])
        for (manager, headers) in [(try manager(), headers), (try manager([line]), HTTPHeaders())] {
            let upload = manager.upload(Data(body.utf8), to: server.url("/in"), headers: headers)
            #expect(try await upload.string == "in")
            #expect(try await manager.request(server.url("/next"), headers: headers).string == "next")
        }
        let sent = server.requests(for: "/in")
        #expect(sent.count == 2 && sent.allSatisfy { $0.body == Array(body.utf8) })
        #expect(sent.allSatisfy { $0.header("content-length") == "\(body.utf8.count)" })
        #expect(server.requests(for: "/evil").isEmpty)
        // A length of zero states that there is no body.
        let isZero = line == "Content-Length: 0"
        #expect(server.requests(for: "/next").allSatisfy { $0.header("content-length") == (isZero ? "0" : nil) })
        #expect(server.requests(for: "/next").allSatisfy { $0.header("transfer-encoding") == nil })
    }

    @Test("a head without a body that libcurl could not send is refused at once", .timeLimit(.minutes(1)))
    func longHead() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "f")]])
        let manager = try manager()
        let long = HTTPHeaders(["X-P": String(repeating: "a", count: 300_000)])
        let error = await manager.request(server.url("/f"), headers: long).outcome.error
        #expect(error?.code == .invalidRequest && error?.message.contains("header fields") == true)
        let short = HTTPHeaders(["X-P": String(repeating: "a", count: 30_000)])
        #expect(try await manager.request(server.url("/f"), headers: short).string == "f")
    }

    @Test("an empty query is sent, and Digest signs it", .timeLimit(.minutes(1)))
    func emptyQuery() async throws {
        let server = try ScriptedServer([
            "/f?": [
                .status(401, headers: [#"WWW-Authenticate: Digest realm="r", nonce="n", qop="auth""#]),
                .status(200, body: "in"),
            ]
        ])
        let manager = try self.manager()
        let request = manager.request(server.url("/f?")).authenticate(user: "u", password: "p")
        #expect(try await request.string == "in")
        #expect(server.requests().last?.header("authorization")?.contains(#"uri="/f?""#) == true)
    }

    @Test("a length beyond 64 bits fails a data request too", .timeLimit(.minutes(1)))
    func hugeLength() async throws {
        let server = try RawServer([Array("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc".utf8)])
        let manager = try self.manager()
        let error = await manager.request("http://127.0.0.1:\(server.port)/").outcome.error
        #expect(error?.code == .truncated && error?.message.contains("Content-Length") == true)
    }

    @Test("a second task that reads the same body fails, and the first one gets it all", .timeLimit(.minutes(1)))
    func twoReaders() async throws {
        let channel = BodyChannel { true }
        await withTaskGroup(of: Result<[UInt8]?, TransferError>.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do throws(TransferError) { return .success(try await channel.next()) } catch {
                        return .failure(error)
                    }
                }
            }
            // The second one ends first, since the first one waits.
            if case .success? = await group.next() { Issue.record("both readers wait") }
            _ = channel.put([1, 2])
            #expect((try? await group.next()?.get()) == [1, 2])
        }
        channel.finish(nil)
        #expect(try await channel.next() == nil)
    }
}
