import ControlProtocol
import Testing

@Suite("What a line may be")
struct MessageLimitsTests {
    private func nested(_ depth: Int, _ open: String = "[", _ close: String = "]") -> String {
        String(repeating: open, count: depth) + String(repeating: close, count: depth)
    }

    @Test("64 levels are allowed, 65 are not, of arrays, of objects and of both mixed")
    func depth() {
        #expect(!MessageLimits.nestsTooDeep(nested(64).utf8))
        #expect(MessageLimits.nestsTooDeep(nested(65).utf8))
        #expect(!MessageLimits.nestsTooDeep(nested(64, "{", "}").utf8))
        #expect(MessageLimits.nestsTooDeep(nested(65, "{", "}").utf8))
        #expect(!MessageLimits.nestsTooDeep(nested(32, "[{", "}]").utf8))
        #expect(MessageLimits.nestsTooDeep(nested(33, "[{", "}]").utf8))
    }

    @Test("a million brackets are judged without an end to them")
    func million() {
        #expect(MessageLimits.nestsTooDeep([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)))
    }

    @Test("brackets in strings do not count, whatever is escaped in them")
    func strings() {
        let brackets = String(repeating: "[", count: 1000)
        #expect(!MessageLimits.nestsTooDeep(#"["\#(brackets)"]"#.utf8))
        #expect(!MessageLimits.nestsTooDeep(#"["\"\#(brackets)"]"#.utf8))
        #expect(!MessageLimits.nestsTooDeep(#"["\\\"\#(brackets)"]"#.utf8))
        #expect(MessageLimits.nestsTooDeep(#"["\\"\#(brackets)]"#.utf8))
        #expect(MessageLimits.nestsTooDeep(#"["",\#(brackets)]"#.utf8))
    }

    @Test("what stands side by side is not deep")
    func wide() {
        #expect(!MessageLimits.nestsTooDeep(String(repeating: "[],", count: 10_000).utf8))
    }
}
