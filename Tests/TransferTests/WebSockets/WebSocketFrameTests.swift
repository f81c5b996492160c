import FoundationEssentials
import Testing

@testable import Transfer

@Suite("WebSocket frames")
struct WebSocketFrameTests {
    @Test(
        "a frame has its length in the shortest form, and its payload is masked",
        arguments: [
            (0, 6), (1, 6), (125, 6), (126, 8), (65_535, 8), (65_536, 14), (70_001, 14),
        ])
    func encoding(count: Int, header: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let bytes = WebSocketFrame.bytes(.binary, payload[...], mask: 0x0102_03F4)
        #expect(bytes.count == header + count)
        #expect(bytes[0] == 0x82 && bytes[1] & 0x80 != 0)
        #expect(Array(bytes[header - 4..<header]) == [1, 2, 3, 0xF4])
        let key: [UInt8] = [1, 2, 3, 0xF4]
        #expect(bytes[header...].enumerated().map { $1 ^ key[$0 & 3] } == payload)
        // The same bytes without the mask are what a server would send.
        var plain = WebSocketFrame.bytes(.binary, payload[...], mask: 0)
        plain[1] &= 0x7F
        plain.removeSubrange(header - 4..<header)
        #expect(plain == ServerFrame.bytes(.binary, payload))
    }

    @Test("a fragment that is not the last one has no FIN bit")
    func fragment() {
        #expect(WebSocketFrame.bytes(.text, isFinal: false, [], mask: 0)[0] == 1)
        #expect(WebSocketFrame.bytes(.continuation, [], mask: 0)[0] == 0x80)
    }

    // MARK: Parsing

    private static func events(
        _ bytes: [UInt8], limit: Int = 1000, split: (Int) -> Int = { $0 }
    ) throws(WebSocketViolation) -> [WebSocketEvent] {
        var assembler = WebSocketAssembler(limit: limit)
        var (events, start): ([WebSocketEvent], Int) = ([], 0)
        while start < bytes.count {
            let count = min(bytes.count - start, max(1, split(bytes.count - start)))
            let piece = Array(bytes[start..<start + count])
            let result = piece.withUnsafeBytes { buffer -> Result<[WebSocketEvent], WebSocketViolation> in
                var (rest, found) = (buffer, [WebSocketEvent]())
                do throws(WebSocketViolation) {
                    while let event = try assembler.next(&rest) { found.append(event) }
                } catch {
                    return .failure(error)
                }
                #expect(rest.isEmpty)
                return .success(found)
            }
            events += try result.get()
            start += count
        }
        return events
    }

    @Test("fragments are assembled, with control frames between them")
    func assembly() throws {
        let bytes =
            ServerFrame.bytes(.text, isFinal: false, [0xE2, 0x82]) + ServerFrame.bytes(.ping, [7])
            + ServerFrame.bytes(.continuation, isFinal: false, []) + ServerFrame.bytes(.pong, [])
            + ServerFrame.bytes(.continuation, [0xAC]) + ServerFrame.bytes(.binary, []) + ServerFrame.text("")
            + ServerFrame.close(1000, "bye")
        let expected: [WebSocketEvent] = [
            .ping([7]), .pong([]), .message(.text("€")), .message(.data(Data())), .message(.text("")),
            .close(WebSocketClosure(code: .normal, reason: "bye")),
        ]
        #expect(try Self.events(bytes) == expected)
        #expect(try Self.events(bytes, split: { _ in 1 }) == expected)
        #expect(try Self.events(ServerFrame.bytes(.close, [])) == [.close(WebSocketClosure(code: .noStatus))])
    }

    @Test("messages in random fragments arrive whole, however the bytes are split", arguments: 0..<12)
    func randomSplits(seed: Int) throws {
        var random = WebSocketRandom(state: UInt64(seed))
        var (bytes, messages): ([UInt8], [WebSocketEvent]) = ([], [])
        for size in [0, 1, 2, 125, 126, 127, 65_535, 65_536].shuffled(using: &random) {
            let isText = Bool.random(using: &random)
            let payload = (0..<size).map { _ in UInt8.random(in: 0..<(isText ? 128 : 255), using: &random) }
            bytes += ServerFrame.fragments(isText ? .text : .binary, payload, using: &random)
            let text = String(decoding: payload, as: UTF8.self)
            messages.append(.message(isText ? .text(text) : .data(Data(payload))))
        }
        let largest = seed.isMultiple(of: 2) ? 100 : 100_000
        let events = try Self.events(bytes, limit: 65_536) { _ in Int.random(in: 1...largest, using: &random) }
        #expect(events.filter { $0 != .ping([1]) } == messages)
    }

    @Test(
        "a violation is found, with the code for the Close frame",
        arguments: [
            ("a reserved bit", ServerFrame.raw(0xC1, []), 1002), ("another", ServerFrame.raw(0x91, []), 1002),
            ("an unknown opcode", ServerFrame.raw(0x83, []), 1002),
            ("an unknown control", ServerFrame.raw(0x8B, []), 1002),
            ("a masked frame", [0x81, 0x80, 1, 2, 3, 4], 1002),
            ("a fragmented ping", ServerFrame.raw(0x09, []), 1002),
            ("a long ping", ServerFrame.raw(0x89, [UInt8](repeating: 0, count: 126)), 1002),
            ("a long form of 16 bits", ServerFrame.raw(0x82, [1], form: 16), 1002),
            ("a long form of 64 bits", ServerFrame.raw(0x82, [1], form: 64), 1002),
            ("the highest bit of a length", ServerFrame.raw(0x82, [], form: 64, length: 1 << 63), 1002),
            ("the largest length", ServerFrame.raw(0x82, [], form: 64, length: .max >> 1), 1009),
            ("a continuation of nothing", ServerFrame.bytes(.continuation, []), 1002),
            (
                "a message within another",
                ServerFrame.bytes(.text, isFinal: false, []) + ServerFrame.bytes(.binary, []), 1002
            ),
            ("a text that is not UTF-8", ServerFrame.bytes(.text, [0xC3]), 1007),
            ("a surrogate", ServerFrame.bytes(.text, [0xED, 0xA0, 0x80]), 1007),
            ("half a close code", ServerFrame.bytes(.close, [3]), 1002),
            ("a close code that is never sent", ServerFrame.close(1005), 1002), ("1006", ServerFrame.close(1006), 1002),
            ("999", ServerFrame.close(999), 1002), ("1016", ServerFrame.close(1016), 1002),
            ("5000", ServerFrame.close(5000), 1002),
            ("a reason that is not UTF-8", ServerFrame.bytes(.close, [3, 232, 0xFF]), 1007),
            ("a large message", ServerFrame.raw(0x82, [], length: 1001), 1009),
            (
                "large fragments",
                ServerFrame.bytes(.binary, isFinal: false, [UInt8](repeating: 0, count: 999))
                    + ServerFrame.bytes(.continuation, [0, 0]), 1009
            ),
        ] as [(String, [UInt8], Int)])
    func violations(name: String, bytes: [UInt8], code: Int) {
        for split in [1, 2, 3, bytes.count] {
            do throws(WebSocketViolation) {
                let events = try Self.events(bytes, split: { _ in split })
                Issue.record("\(name): \(events)")
            } catch {
                #expect(error.code.rawValue == UInt16(code), "\(name): \(error.words)")
                #expect(error.error.code == (code == 1009 ? .tooLarge : .truncated))
            }
        }
    }

    @Test("a message of exactly the limit is accepted")
    func limit() throws {
        #expect(try Self.events(ServerFrame.bytes(.binary, [UInt8](repeating: 1, count: 1000))).count == 1)
    }

    @Test("random bytes never trap", arguments: 0..<20)
    func noise(seed: Int) {
        var random = WebSocketRandom(state: UInt64(seed))
        for _ in 0..<200 {
            let bytes = (0..<64).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = try? Self.events(bytes, split: { _ in 5 })
        }
    }
}
