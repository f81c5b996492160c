import FoundationEssentials
import Testing

@testable import TaskModel

@Suite("A specification in JSON")
struct TaskSpecificationCodableTests {
    private static func decode(_ json: String) throws -> TaskSpecification {
        try JSONDecoder().decode(TaskSpecification.self, from: Data(json.utf8))
    }

    private static func encode(_ specification: TaskSpecification) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(specification), as: UTF8.self)
    }

    private static func error(_ json: String) -> FieldError? {
        do {
            _ = try decode(json)
            return nil
        } catch {
            return error as? FieldError
        }
    }

    static let full = """
        {"afterTask":3,"batch":"b","caCertificates":"c","checksum":"md5:0","checksumURL":"http://h/s","connectTimeout":6,\
        "connections":4,\
        "contentType":"t/t","cookies":"c","descriptor":2,"directory":"d","file":"/f","fileField":"n",\
        "form":["a=b","c="],"headers":["A: b"],"insecure":true,"key":"k","kind":"upload",\
        "limit":1024,\
        "maxAttempts":30,"maxSize":9007199254740993,"metalink":true,"method":"POST","mirrors":["http://i/a","ftp://j/a"],\
        "nameFrom":"final","netrc":"n","noMtime":true,\
        "onConflict":"skip","output":"o","password":"p","paused":true,\
        "pieceHashes":{"algorithm":"md5","hashes":"AAECAwQFBgcICQoLDA0ODw==","length":262144},"priority":"high",\
        "proxy":"http://p","referer":"r","shared":true,"size":7,"stallTimeout":8,"startAt":5,"startAtText":"+2h","update":true,"url":"http://h/a",\
        "user":"u","userAgent":"a"}
        """

    @Test("every field comes back as it went")
    func roundTrip() throws {
        let specification = try Self.decode(Self.full)
        #expect(try Self.encode(specification) == Self.full)
        #expect(specification.maxSize == 9_007_199_254_740_993)
        let fields =
            Mirror(reflecting: specification).children.count - 1 + Mirror(reflecting: DetailValues()).children.count
        // The piece hashes have three fields; the caller's groups and the open file's name are never encoded.
        #expect(Self.full.split(separator: "\":").count - 1 == fields + 3 - 2, "a field is missing in this test")
    }

    @Test("what is as by default is left out, and absent or null is the default")
    func defaults() throws {
        let plain = TaskSpecification(url: "http://h/a")
        #expect(try Self.encode(plain) == #"{"url":"http://h/a"}"#)
        #expect(try Self.decode(#"{"url":"http://h/a"}"#) == plain)
        #expect(
            try Self.decode(#"{"url":"http://h/a","output":null,"headers":null,"paused":null,"kind":null}"#) == plain)
    }

    @Test(
        "an unknown key is named, with the nearest that there is",
        arguments: [
            ("outptu", "output"), ("Checksum", "checksum"), ("header", "headers"), ("max_size", "maxSize"),
            ("zzzzzzzz", nil),
        ])
    func unknownKey(key: String, nearest: String?) {
        let error = Self.error(#"{"url":"http://h","\#(key)":1}"#)
        #expect(error?.field == key)
        #expect(error?.message == "is not a field of a task" + (nearest.map { "; did you mean \($0)?" } ?? ""))
    }

    @Test(
        "a value of another type is named",
        arguments: [
            ("url", "1"), ("kind", "\"fetch\""), ("kind", "1"), ("headers", "\"A: b\""), ("headers", "[1]"),
            ("maxSize", "\"1M\""), ("maxSize", "1.5"), ("startAt", "1e30"), ("noMtime", "1"), ("paused", "\"true\""),
            ("priority", "3"), ("onConflict", "\"ask\""), ("key", "{}"), ("output", "[]"), ("mirrors", "\"http://h\""),
            ("form", "\"a=b\""), ("form", "[[\"a\",\"b\"]]"), ("fileField", "1"), ("cookies", "[]"),
            ("metalink", "\"http://h\""), ("metalink", "1"),
            ("checksumURL", "1"), ("size", "\"1M\""), ("connections", "\"4\""), ("connections", "1.5"),
            ("connections", "\"all\""), ("pieceHashes", "[]"), ("pieceHashes", "\"AA==\""),
        ])
    func wrongType(field: String, value: String) {
        let url = field == "url" ? "" : #""url":"http://h","#
        let error = Self.error("{\(url)\"\(field)\":\(value)}")
        #expect(error?.field == field)
        #expect(error?.message.hasPrefix("must be ") == true)
    }

    @Test("a word that is not one lists those that are")
    func words() {
        #expect(Self.error(#"{"url":"http://h","priority":"top"}"#)?.message == "must be one of low, normal, high, now")
    }

    @Test("connections are a number or auto")
    func connections() throws {
        let automatic = try Self.decode(#"{"url":"http://h","connections":"auto"}"#)
        #expect(automatic.connections == .auto)
        #expect(try Self.encode(automatic) == #"{"connections":"auto","url":"http://h"}"#)
        #expect(try Self.decode(#"{"url":"http://h","connections":16}"#).connections == .exactly(16))
        let message = Self.error(#"{"url":"http://h","connections":"16"}"#)?.message
        #expect(message == "must be auto or a whole number from 1 to 16")
    }

    @Test(
        "what is wrong within the piece hashes is named",
        arguments: [
            (#"{"length":1,"hashes":""}"#, "algorithm"), (#"{"algorithm":"crc","length":1,"hashes":""}"#, "algorithm"),
            (#"{"algorithm":"sha-1","hashes":""}"#, "length"), (#"{"algorithm":"sha-1","length":1}"#, "hashes"),
            (#"{"algorithm":"sha-1","length":1.5,"hashes":""}"#, "length"),
            (#"{"algorithm":"sha-1","length":1,"hashes":"A"}"#, "hashes"),
            (#"{"algorithm":"sha-1","length":1,"hashes":"AA==\n"}"#, "hashes"),
            (#"{"algorithm":"sha-1","length":1,"hashes":"","lenght":1}"#, "lenght"),
        ])
    func pieces(json: String, field: String) {
        #expect(Self.error(#"{"url":"http://h","pieceHashes":\#(json)}"#)?.field == "pieceHashes.\(field)")
    }

    @Test("the URL must be there", arguments: ["{}", #"{"url":null}"#])
    func noURL(json: String) {
        #expect(Self.error(json) == FieldError(field: "url", message: "is missing"))
    }

    @Test("what is no object is no specification", arguments: ["[]", "1", "null", "\"http://h\""])
    func noObject(json: String) {
        #expect(throws: (any Error).self) { try Self.decode(json) }
    }
}
