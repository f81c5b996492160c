import ControlProtocol
import FoundationEssentials
import NIOCore
import Synchronization
import TaskModel
import Testing

@testable import ControlServer

@Suite("From a line to its answer")
struct RequestProcessorTests {
    private let processor = RequestProcessor(
        handler: ScriptedHandler(), peer: Peer(uid: 1, gid: 1, pid: 1),
        searches: SearchRunner(threads: .shared))

    private func answer(_ line: [UInt8]) async -> String? {
        await processor.reply(to: processor.read(ByteBuffer(bytes: line)), permit: .always).answer.map {
            String(buffer: $0)
        }
    }

    private func answer(_ line: String) async -> String? { await answer(Array(line.utf8)) }

    /// Returns the number of the single error in the response.
    private func errorNumber(_ line: [UInt8]) async throws -> Int? {
        let text = try #require(await answer(line))
        let response = try JSONDecoder().decode(
            IncomingResponse<Acknowledgement>.self, from: Data(text.utf8))
        guard case .failure(let error) = response.outcome else { return nil }
        return error.code
    }

    private func errorNumber(_ line: String) async throws -> Int? { try await errorNumber(Array(line.utf8)) }

    @Test("a request is answered with its own id, one line, keys in order")
    func single() async {
        #expect(await answer(request(7)) == acknowledgement(7) + "\n")
        #expect(
            await answer(#" {"jsonrpc":"2.0","id":"a/b","method":"daemon.status"} "#)
                == #"{"id":"a/b","jsonrpc":"2.0","result":{"ok":true}}"# + "\n")
    }

    @Test(
        "a result that is encoded already gives the same line as one that is not",
        arguments: ["7", "-1", #""a/b""#, #""\u0022ü\n""#, "null"])
    func encodedResult(id: String) async throws {
        let result = ["b": ["/", "ü\n"], "a": []]
        let line = #"{"jsonrpc":"2.0","id":\#(id),"method":"daemon.status"}"#
        var answers: [String?] = []
        for encoded: any Encodable & Sendable in [result, try EncodedResult(result)] {
            let processor = RequestProcessor(
                handler: ScriptedHandler(commands: { _, _ in .success(encoded) }), peer: Peer(uid: 1, gid: 1, pid: 1),
                searches: SearchRunner(threads: .shared))
            let message = processor.read(ByteBuffer(string: line))
            answers.append(
                await processor.reply(to: message, permit: .always).answer.map { String(buffer: $0) })
        }
        let atHand = RequestProcessor(
            handler: ScriptedHandler(resultsAtHand: { _, _ in try? EncodedResult(result) }),
            peer: Peer(uid: 1, gid: 1, pid: 1),
            searches: SearchRunner(threads: .shared))
        answers.append(
            atHand.replyAtHand(to: atHand.read(ByteBuffer(string: line)))?.answer.map { String(buffer: $0) })
        #expect(answers[0] != nil && answers[0] == answers[1] && answers[0] == answers[2], "\(answers)")
    }

    @Test("only a single request with an id has its result at hand")
    func resultAtHand() {
        let processor = RequestProcessor(
            handler: ScriptedHandler(resultsAtHand: { _, _ in try? EncodedResult(1) }),
            peer: Peer(uid: 1, gid: 1, pid: 1),
            searches: SearchRunner(threads: .shared))
        for line in [
            #"{"jsonrpc":"2.0","method":"daemon.status"}"#, #"{"jsonrpc":"2.0","id":1,"method":"no.such"}"#,
            "[\(request(1))]", "{",
        ] {
            #expect(processor.replyAtHand(to: processor.read(ByteBuffer(string: line))) == nil, "\(line)")
        }
    }

    @Test("a notification is carried out and not answered, right or wrong")
    func notification() async {
        #expect(await answer(#"{"jsonrpc":"2.0","method":"daemon.status"}"#) == nil)
        #expect(await answer(#"{"jsonrpc":"2.0","method":"no.such"}"#) == nil)
        #expect(await answer(#"[{"jsonrpc":"2.0","method":"daemon.status"}]"#) == nil)
    }

    @Test(
        "what is not JSON in UTF-8 is a parse error",
        arguments: [
            Array("hello".utf8), Array("{".utf8), Array("[1,2".utf8), Array(#"{"id":}"#.utf8), Array("{} {}".utf8),
            [0xFF, 0xFE], [0x7B, 0x22, 0xC3, 0x28, 0x22, 0x3A, 0x31, 0x7D], [0xED, 0xA0, 0x80],
            // The same request in UTF-16, which a lenient decoder would accept.
            request(1).utf8.reduce(into: []) { $0 += [$1, 0] },
            [0], Array(11...255),
        ] as [[UInt8]])
    func parseError(_ line: [UInt8]) async throws {
        #expect(try await errorNumber(line) == RPCError.Number.parse)
    }

    @Test("nesting up to 64 is decoded, deeper is refused before it is")
    func nesting() async throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(try await errorNumber(nested(65)) == RPCError.Number.invalidRequest)
        #expect(await answer(nested(65))?.contains("deeper than 64 levels") == true)
        #expect(await answer(nested(64))?.contains("nest") == false)
        #expect(
            try await errorNumber([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000))
                == RPCError.Number.invalidRequest)
    }

    @Test("numbers that no field can hold are the request's error, and nothing breaks")
    func hugeNumbers() async throws {
        for number in ["1e999", "-1e999", "99999999999999999999999999", "1.5", String(repeating: "9", count: 5000)] {
            let line = #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":\#(number)}}"#
            let text = try #require(await answer(line))
            #expect(text.contains(#""code":-32602"#), "\(number): \(text)")
            #expect(text.contains(#""field":"#), "\(number): \(text)")
            let asID = try await errorNumber(#"{"jsonrpc":"2.0","id":\#(number),"method":"daemon.status"}"#)
            #expect(asID == RPCError.Number.invalidRequest, "\(number)")
        }
    }

    @Test(
        "what only a lenient decoder takes for JSON is a parse error",
        arguments: [
            #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":9},}"#,
            #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":9,}}"#,
            #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":099}}"#,
            #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":99999.}}"#,
            #"{"jsonrpc":"2.0","id":"\x","method":"daemon.status"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\tb\",\"method\":\"daemon.status\"}",
            #"[{"jsonrpc":"2.0","id":1,"method":"daemon.status"},]"#,
            "\u{FEFF}" + #"{"jsonrpc":"2.0","id":1,"method":"daemon.status"}"#,
        ])
    func lenience(_ line: String) async throws {
        #expect(try await errorNumber(line) == RPCError.Number.parse)
        #expect(await answer(line)?.contains(#""message":"the line is not JSON (byte "#) == true)
    }

    @Test(
        "a key that stands twice in one object is told by its name, and nothing is carried out",
        arguments: [
            #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":3,"id":9999}}"#,
            #"{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":3,"\u0069d":9999}}"#,
            #"[\#(request(1)),{"jsonrpc":"2.0","id":1,"method":"daemon.status","id":2}]"#,
        ])
    func duplicateKeys(_ line: String) async throws {
        let processor = RequestProcessor(
            handler: ScriptedHandler(commands: { _, _ in
                Issue.record("was carried out")
                return .success(Acknowledgement())
            }), peer: Peer(uid: 1, gid: 1, pid: 1),
            searches: SearchRunner(threads: .shared))
        let answer = await processor.reply(to: processor.read(ByteBuffer(string: line)), permit: .always)
            .answer
        #expect(
            answer.map { String(buffer: $0) }
                == #"{"error":{"code":-32600,"data":{"code":"invalid"},"#
                + #""message":"the line contains the key id twice in one object"},"id":null,"jsonrpc":"2.0"}"# + "\n")
    }

    // MARK: - Batches

    @Test("a batch is answered by one array in order, a bad request spoiling no other")
    func batch() async {
        #expect(
            await answer(#"[\#(request(1)),1,{"jsonrpc":"2.0","method":"daemon.status"},\#(request(2))]"#)
                == "[" + acknowledgement(1)
                + #",{"error":{"code":-32600,"data":{"code":"invalid"},"message":"a request is a JSON object"}"#
                + #","id":null,"jsonrpc":"2.0"},"# + acknowledgement(2) + "]\n")
    }

    @Test("an empty batch, and one of more than 1,000, are refused whole")
    func batchLimits() async throws {
        #expect(try await errorNumber("[]") == RPCError.Number.invalidRequest)
        #expect(try await errorNumber(" [ ] ") == RPCError.Number.invalidRequest)
        let full = [String](repeating: request(1), count: 1000)
        #expect(await answer("[" + full.joined(separator: ",") + "]")?.hasPrefix("[{") == true)
        let over = "[" + (full + [request(1)]).joined(separator: ",") + "]"
        #expect(try await errorNumber(over) == RPCError.Number.invalidRequest)
        let ones = "[1" + String(repeating: ",1", count: 500_000) + "]"
        #expect(try await errorNumber(ones) == RPCError.Number.invalidRequest)
    }

    @Test("once a batch's answer is too long, the rest of it is refused and not carried out")
    func batchAnswerBounded() async throws {
        let calls = Mutex(0)
        let page = [String](repeating: String(repeating: "x", count: 1000), count: 600)
        let processor = RequestProcessor(
            handler: ScriptedHandler(commands: { _, _ in
                calls.withLock { $0 += 1 }
                return .success(page)
            }), peer: Peer(uid: 1, gid: 1, pid: 1),
            searches: SearchRunner(threads: .shared))
        let line = "[" + [String](repeating: request(1), count: 100).joined(separator: ",") + "]"
        let answer = try #require(
            await processor.reply(to: processor.read(ByteBuffer(string: line)), permit: .always).answer)
        #expect(calls.withLock { $0 } == 2)
        #expect(answer.readableBytes < 2 << 20)
        #expect(String(buffer: answer).contains(#""code":"too-large""#))
    }

    // MARK: - Results

    @Test("a result that cannot be written as JSON is an internal error, not a silence")
    func unencodable() async throws {
        let processor = RequestProcessor(
            handler: ScriptedHandler(commands: { _, _ in .success(Double.nan) }), peer: Peer(uid: 1, gid: 1, pid: 1),
            searches: SearchRunner(threads: .shared))
        let answer = try #require(
            await processor.reply(to: processor.read(ByteBuffer(string: request(3))), permit: .always)
                .answer)
        #expect(String(buffer: answer).contains(#""code":-32603"#))
        #expect(String(buffer: answer).contains(#""id":3"#))
    }

    @Test("the handler's error goes out as it is")
    func handlersError() async throws {
        let processor = RequestProcessor(
            handler: ScriptedHandler(commands: { _, _ in .failure(.unknownTask(TaskID(9))) }),
            peer: Peer(uid: 1, gid: 1, pid: 1),
            searches: SearchRunner(threads: .shared))
        let answer = await processor.reply(
            to: processor.read(ByteBuffer(string: request(3))), permit: .always
        ).answer
        #expect(
            answer.map { String(buffer: $0) }
                == #"{"error":{"code":-32001,"data":{"code":"unknown-task","field":"id"},"#
                + #""message":"no task has the id 9"},"id":3,"jsonrpc":"2.0"}"# + "\n")
    }

    @Test("an event goes out as the encoder would write it, with whatever it holds")
    func events() throws {
        let failure = TaskFailure(code: .io, message: "a \"quote\"", httpStatus: 404)
        var events = [TaskEvent(sequence: 1, at: -2, type: .gap)]
        for type in TaskEvent.Kind.allCases {
            events.append(TaskEvent(sequence: .max, at: 1_700_000_000_000, type: type, id: TaskID(7), state: .queued))
        }
        for state in TaskState.allCases {
            events.append(TaskEvent(sequence: 3, at: 4, type: .paused, id: TaskID(.max), state: state, reason: .user))
        }
        events.append(TaskEvent(sequence: 5, at: 6, type: .failed, id: TaskID(1), state: .failed, error: failure))
        for text in ["plain/é", "a \"quote\"", "a\\b", "\u{1}\u{7F}\n\t\u{2028}", ""] {
            var event = TaskEvent(sequence: 7, at: 8, type: .completed, id: TaskID(1), state: .completed)
            (event.url, event.path, event.batch, event.key) = (text, text, text, text)
            (event.kind, event.owner, event.bytesDone, event.bytesTotal) = (.upload, .max, .max, 0)
            events.append(event)
            event.progress = .init(rate: 1, eta: nil, connections: 2)
            events.append(event)
            event.totals = BatchResult(completed: 1, failed: 2, cancelled: 3, bytesDone: 4)
            events.append(event)
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let expected = try events.map { event in
            String(decoding: try encoder.encode(EventNotification(event: event)), as: UTF8.self) + "\n"
        }
        #expect(String(buffer: RequestProcessor.lines(events)) == expected.joined())
    }
}

extension SubscriptionPermit {
    /// A permit for any number of streams.
    fileprivate static let always = SubscriptionPermit(acquire: { .granted }, release: {})
}

extension HeavyThreads {
    fileprivate static let shared = HeavyThreads(count: 1)
}
