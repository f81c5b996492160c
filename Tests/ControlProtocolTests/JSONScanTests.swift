import ControlProtocol
import Testing

@Suite("What a line may be")
struct JSONScanTests {
    private func fault(_ text: String) -> JSONScan.Fault? { JSONScan.fault(in: text.utf8) }

    private func nested(_ depth: Int, _ open: String = "[", _ middle: String = "", _ close: String = "]") -> String {
        String(repeating: open, count: depth) + middle + String(repeating: close, count: depth)
    }

    // MARK: - Grammar

    @Test(
        "JSON is taken as RFC 8259 has it",
        arguments: [
            "{}", "[]", " { } ", "[ ]", "\t[1 ,\r2\n]", "null", "true", "false", "0", "-0", "10", "0.5", "-1.25e+10",
            "1E-3", "1e999", "\"\"", #"{"a":{"b":[{},[],"c",null]}}"#, #"{"a":1,"b":1}"#, "[[],[]]",
            #""\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00""#, "\"é漢😀\u{7F}\u{2028}\"", #"{"":0}"#,
        ])
    func taken(text: String) {
        #expect(fault(text) == nil)
    }

    @Test(
        "what the grammar does not have is refused, with its place",
        arguments: [
            ("", 0), (" ", 1), ("{\"id\":9,}", 8), ("{\"id\":9},", 8), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3),
            ("[1,,2]", 3), ("{,}", 1), ("{\"a\"}", 4), ("{\"a\":}", 5), ("{\"a\" 1}", 5), ("{a:1}", 1), ("{1:1}", 1),
            ("{\"a\":1 \"b\":2}", 7), ("[1}", 2), ("{\"a\":1]", 6), ("]", 0), ("}", 0), (":", 0), (",", 0),
            ("{} {}", 3), ("1 2", 2), ("[1", 2), ("{", 1), ("{\"a\":1", 6), ("\"", 1), ("\"a", 2), ("\"\\", 2),
            ("099", 1), ("-01", 2), ("99999.", 6), ("[99999.]", 7), (".5", 0), ("+1", 0), ("-", 1), ("1e", 2),
            ("1e+", 3), ("1.e5", 2), ("0x10", 1), ("NaN", 0), ("Infinity", 0), ("-Infinity", 1), ("1_000", 1),
            ("tru", 3), ("True", 0), ("nulll", 4), ("nul", 3), ("'a'", 0), ("\"a\nb\"", 2), ("\"a\tb\"", 2),
            ("\"\u{0}\"", 1), ("\"\u{1F}\"", 1), (#""\x""#, 2), (#""\u12""#, 5), (#""\u12G4""#, 5), (#""\U1234""#, 2),
            ("\"\\\n\"", 2), ("/* */ 1", 0), ("1 // a", 2), ("\u{FEFF}{}", 0), ("[1]\u{A0}", 3), ("\u{B}1", 0),
        ])
    func refused(text: String, offset: Int) {
        #expect(fault(text) == .notJSON(offset: offset))
    }

    @Test(
        "bytes that are no UTF-8 are refused where the character begins",
        arguments: [
            [0xC3, 0x28], [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
            [0xED, 0xA0, 0x80], [0xE2, 0x28, 0xA1], [0xE2, 0x82, 0x28], [0xF0, 0x80, 0x80, 0x80],
            [0xF0, 0x9F, 0x98, 0x28], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xFE],
        ] as [[UInt8]])
    func notText(bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        #expect(JSONScan.fault(in: [quote, 0x61] + bytes + [quote]) == .notText(offset: 2))
        #expect(JSONScan.fault(in: [quote, 0x61] + bytes.dropLast()) != nil)
    }

    @Test("every character there is may stand in a string, at the edges of its length too")
    func characters() {
        for value: UInt32 in [0x20, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
        {
            let text = Unicode.Scalar(value).map { "[\"\($0)\"]" } ?? ""
            #expect(fault(text) == nil, "\(value)")
            #expect(JSONScan.fault(in: text.utf8.dropLast(3)) != nil, "\(value)")
        }
    }

    @Test("a text that is not in one piece is judged like one that is")
    func pieces() {
        #expect(JSONScan.fault(in: Array("[1,2]".utf8).lazy.map { $0 }) == nil)
        #expect(JSONScan.fault(in: Array("[1,]".utf8).lazy.map { $0 }) == .notJSON(offset: 3))
        #expect(JSONScan.fault(in: Array("x[1,]".utf8).dropFirst()) == .notJSON(offset: 3))
    }

    // MARK: - Nesting

    @Test("64 levels are allowed, 65 are not, of arrays, of objects and of both mixed")
    func depth() {
        #expect(fault(nested(64)) == nil)
        #expect(fault(nested(65)) == .tooDeep)
        #expect(fault(nested(64, "{\"a\":", "1", "}")) == nil)
        #expect(fault(nested(65, "{\"a\":", "1", "}")) == .tooDeep)
        #expect(fault(nested(32, "[{\"a\":", "1", "}]")) == nil)
        #expect(fault(nested(33, "[{\"a\":", "1", "}]")) == .tooDeep)
    }

    @Test("a million brackets are judged without an end to them")
    func million() {
        #expect(JSONScan.fault(in: [UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)) == .tooDeep)
    }

    @Test("brackets in strings do not count, whatever is escaped in them")
    func strings() {
        let brackets = String(repeating: "[", count: 1000)
        #expect(fault(#"["\#(brackets)"]"#) == nil)
        #expect(fault(#"["\"\#(brackets)"]"#) == nil)
        #expect(fault(#"["\\\"\#(brackets)"]"#) == nil)
        #expect(fault(#"["\\",\#(brackets)]"#) == .tooDeep)
        #expect(fault(#"["",\#(brackets)]"#) == .tooDeep)
    }

    @Test("what stands side by side is not deep")
    func wide() {
        #expect(fault("[" + String(repeating: "[],{},", count: 10_000) + "1]") == nil)
    }

    // MARK: - Keys

    @Test(
        "a key that an object gives twice is named",
        arguments: [
            (#"{"id":3,"id":9999}"#, "id"), (#"{"a":{"b":1,"c":2,"b":3}}"#, "b"), (#"[{"a":1},{"a":1,"a":1}]"#, "a"),
            (#"{"":1,"":2}"#, ""), (#"{"id":1,"\u0069d":2}"#, "id"), (#"{"\u0069d":1,"id":2}"#, "id"),
            (#"{"a\/b":1,"a/b":2}"#, "a/b"), (#"{"x":1,"\ud83d\uDE00":1,"😀":2}"#, "😀"), (#"{"\u00E9":1,"é":2}"#, "é"),
            (#"{"\u6f22":1,"漢":2}"#, "漢"), (#"{"a":{"c":{"d":1}},"b":1,"a":1}"#, "a"),
            (#"{"\n\r\t\b\f\"\\":1,"\u000a\u000D\u0009\u0008\u000c\u0022\u005C":1}"#, "\n\r\t\u{8}\u{C}\"\\"),
        ])
    func duplicate(text: String, key: String) {
        #expect(fault(text) == .duplicateKey(key))
    }

    @Test(
        "keys that differ, or stand in different objects, are not the same",
        arguments: [
            #"{"a":{"a":{"a":1}}}"#, #"[{"a":1},{"a":1}]"#, #"{"a":1,"A":2,"aa":3,"":4}"#, #"{"a":"a","b":"a"}"#,
            #"{"\\n":1,"\n":2}"#, #"{"a":[{"b":1},{"b":1}],"b":1}"#, #"{"\ud800":1,"\ud801":2,"\ufffd":3}"#,
            "{\"\u{E9}\":1,\"e\u{301}\":2}", #"{"\ud800\u0061":1,"\ud800a ":2}"#,
        ])
    func different(text: String) {
        #expect(fault(text) == nil)
    }

    @Test("what is no JSON is told before a key that is given twice")
    func order() {
        #expect(fault(#"{"a":1,"a":2,}"#) == .notJSON(offset: 13))
        #expect(fault(#"{"a":1,"a":2,"b":1,"b":1}"#) == .duplicateKey("a"))
    }

    @Test("an object with a hundred thousand keys is judged in time, and its last key too")
    func manyKeys() {
        let keys = (0..<100_000).map { "\"\($0)\":0" }.joined(separator: ",")
        #expect(fault("{\(keys)}") == nil)
        #expect(fault("{\(keys),\"7\":0}") == .duplicateKey("7"))
        #expect(fault("{\(keys),\"\\u0037\":0}") == .duplicateKey("7"))
        for count in 60..<70 {
            let keys = (0..<count).map { "\"\($0)\":{\"a\":0}" }.joined(separator: ",")
            #expect(fault("{\(keys)}") == nil)
            #expect(fault("{\(keys),\"\(count - 1)\":0}") == .duplicateKey("\(count - 1)"))
            #expect(fault("{\(keys),\"0\":0}") == .duplicateKey("0"))
        }
    }
}
