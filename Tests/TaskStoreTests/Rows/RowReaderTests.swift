import GRDB
import Testing

@testable import TaskStore

@Suite("Rows that are read by hand")
struct RowReaderTests {
    private func row<Value>(_ columns: String, _ decode: (RowReader) throws -> Value) throws -> Value? {
        try DatabaseQueue().read { try $0.firstRow("SELECT " + columns, [], decode) }
    }

    @Test("values come out as they are stored")
    func values() throws {
        #expect(try row("9223372036854775807, 2.0") { try $0.integer(0) == .max && $0.whole(1) == 2 } == true)
        #expect(try row("'', 'grüße'") { [try $0.text(0), try $0.text(1)] } == ["", "grüße"])
        #expect(try row("x'', x'00ff'") { [try $0.bytesOrNil(0), try $0.bytesOrNil(1)] } == [[], [0, 255]])
        #expect(
            try row("NULL") { try $0.integerOrNil(0) == nil && $0.textOrNil(0) == nil && $0.bytesOrNil(0) == nil }
                == true)
    }

    @Test("a value of another type is refused", arguments: ["1", "2.0", "'a'", "x'00'", "NULL"])
    func types(value: String) throws {
        func reads(_ decode: (RowReader) throws -> some Sendable) throws -> Bool {
            do {
                return try row(value, decode) != nil
            } catch is StoreError {
                return false
            }
        }
        #expect(try reads { try $0.integer(0) } == (value == "1"))
        #expect(try reads { try $0.text(0) } == (value == "'a'"))
        #expect(try reads { try $0.whole(0) } == (value == "2.0"))
    }

    @Test(
        "a text is found in another",
        arguments: ["", "a", "{\"afterTask\":3}", "{\"a\":\"afterTask\"}", "afterTask\"", "\"\"afterTask\""])
    func search(text: String) {
        #expect(text.hasBytes(of: "\"afterTask\"") == text.contains("\"afterTask\""))
    }
}
