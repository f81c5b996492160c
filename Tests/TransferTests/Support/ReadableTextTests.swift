import Testing

@testable import Transfer

@Suite("Counts and times as text")
struct ReadableTextTests {
    @Test("a single unit has no plural")
    func counts() {
        #expect(ReadableText.bytes(0) == "0 bytes" && ReadableText.bytes(1) == "1 byte")
        #expect(ReadableText.bytes(1, of: 24) == "1 of 24 bytes" && ReadableText.bytes(12, of: nil) == "12 bytes")
    }

    @Test(
        "times are milliseconds with a digit after the point",
        arguments: [
            (0, "0.0 ms"), (99, "0.0 ms"), (100, "0.1 ms"), (12_345, "12.3 ms"), (-1_500, "-1.5 ms"),
            (.min, "-9223372036854775.8 ms"),
        ] as [(Int64, String)])
    func times(microseconds: Int64, text: String) { #expect(ReadableText.time(microseconds: microseconds) == text) }

    @Test("control characters become spaces, also in a line ending, which is one character")
    func controls() {
        #expect(ReadableText.line("a\r\nb\u{1B}[2Jc\u{7F}ü") == "a  b [2Jc ü")
        #expect(ReadableText.line("plain ü") == "plain ü")
    }
}
