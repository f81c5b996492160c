import ControlProtocol
import FoundationEssentials
import TaskModel
import Testing

@Suite("Events without a general coder")
struct EventTextTests {
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()

    private static func written(_ event: TaskEvent) -> [UInt8]? {
        var bytes: [UInt8] = []
        return EventText.append(event, to: &bytes) ? bytes : nil
    }

    /// A reproducible sequence of numbers (SplitMix64).
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    private static func event(_ random: inout Numbers) -> TaskEvent {
        func one<Value>(of values: [Value]) -> Value { values[Int.random(in: values.indices, using: &random)] }
        func maybe<Value>(_ values: [Value]) -> Value? { Bool.random(using: &random) ? one(of: values) : nil }
        let numbers: [Int64] = [0, 1, -1, 9, 10, .max, .min, .max - 1, 1_700_000_000_000]
        let texts = ["", "a", "null", "https://example.org/a?b=c,d", "{\"", "a\\", "\n", "é", "\u{7F}", "\u{0}", "}}"]
        var event = TaskEvent(
            sequence: one(of: numbers), at: one(of: numbers), type: one(of: TaskEvent.Kind.allCases),
            id: maybe(numbers.map { TaskID($0) }), state: maybe(TaskState.allCases), reason: maybe(TaskReason.allCases))
        event.kind = maybe(TaskKind.allCases)
        event.owner = maybe([0, 1_000, UInt32.max])
        (event.bytesDone, event.bytesTotal) = (maybe(numbers), maybe(numbers))
        (event.batch, event.key, event.url, event.path) = (maybe(texts), maybe(texts), maybe(texts), maybe(texts))
        return event
    }

    @Test("what is written is what an encoder writes, and it is read again")
    func roundTrip() throws {
        var random = Numbers(state: 7)
        var count = 0
        for _ in 0..<5_000 {
            let event = Self.event(&random)
            guard let bytes = Self.written(event) else { continue }
            count += 1
            let encoded = try Self.encoder.encode(EventNotification(event: event))
            try #require(bytes == Array(encoded))
            let read = bytes.withUnsafeBytes(EventText.event)
            try #require(read == event)
        }
        #expect(count > 100)
    }

    @Test("an event with an error, progress, totals or unusual characters is for the encoder, and nothing is appended")
    func others() {
        let base = TaskEvent(sequence: 1, at: 2, type: .completed, id: TaskID(3), state: .completed)
        var events = [TaskEvent](repeating: base, count: 7)
        events[0].error = TaskFailure(code: .io, message: "m")
        events[1].progress = .init(rate: 1, eta: nil, connections: 2)
        events[2].totals = BatchResult(completed: 1, failed: 2, cancelled: 3, bytesDone: 4)
        for (index, text) in ["é", "\"", "\\", "\n"].enumerated() { events[3 + index].url = text }
        for event in events {
            var bytes: [UInt8] = [7]
            let isWritten = EventText.append(event, to: &bytes)
            #expect(!isWritten && bytes == [7])
        }
    }

    @Test("a text with any byte changed, added or missing is read as the general decoder does, or not at all")
    func changes() throws {
        var event = TaskEvent(
            sequence: 1_234, at: -5, type: .completed, id: TaskID(3), state: .completed, reason: .network)
        (event.owner, event.bytesDone, event.url, event.kind) = (1_000, .min, "http://h/f", .download)
        let bytes = try #require(Self.written(event))
        func check(_ changed: [UInt8]) throws {
            guard let read = changed.withUnsafeBytes(EventText.event) else { return }
            let decoded = try? JSONDecoder().decode(EventNotification.self, from: Data(changed)).event
            try #require(read == decoded, "\(String(decoding: changed, as: UTF8.self))")
        }
        for index in bytes.indices {
            for byte in [0, 0x20, 0x22, 0x2C, 0x2D, 0x30, 0x39, 0x5C, 0x7D, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = byte
                try check(changed)
                changed = bytes
                changed.insert(byte, at: index)
                try check(changed)
            }
            var changed = bytes
            changed.remove(at: index)
            try check(changed)
            try check(Array(bytes[..<index]))
        }
        try check(bytes + [0x20])
        try check([])
    }

    @Test(
        "numbers beyond their types are for the general decoder",
        arguments: [
            "9223372036854775808", "-9223372036854775809", "99999999999999999999", "1.0", "1e3", "01", "-", "",
        ])
    func numbers(text: String) throws {
        let event = TaskEvent(sequence: 77, at: 5, type: .added)
        let bytes = try #require(Self.written(event))
        let changed = String(decoding: bytes, as: UTF8.self).replacing("\"sequence\":77", with: "\"sequence\":\(text)")
        #expect(Array(changed.utf8).withUnsafeBytes(EventText.event) == nil)
    }

    @Test("the owner's uid has 32 bits", arguments: ["-1", "4294967296"])
    func owner(text: String) throws {
        var event = TaskEvent(sequence: 77, at: 5, type: .added)
        event.owner = 1
        let bytes = try #require(Self.written(event))
        let changed = String(decoding: bytes, as: UTF8.self).replacing("\"owner\":1", with: "\"owner\":\(text)")
        #expect(Array(changed.utf8).withUnsafeBytes(EventText.event) == nil)
    }
}
