import FoundationEssentials
import Testing

@testable import TaskModel

@Suite("Piece hashes")
struct PieceHashesTests {
    @Test("each piece has its digest, the last and shorter one too")
    func pieces() throws {
        let hashes = PieceHashes(algorithm: .sha1, length: 10, hashes: (0..<60).map { UInt8($0) })
        try hashes.check(size: 21)
        try hashes.check(size: 30)
        #expect(hashes.count == 3)
        #expect(Array(hashes[2]) == Array(40..<60))
        #expect(throws: FieldError.self) { try hashes.check(size: 31) }
        #expect(throws: FieldError.self) { try hashes.check(size: 20) }
    }

    @Test("the largest fit into JSON of a call and come back")
    func largest() throws {
        let hashes = PieceHashes(
            algorithm: .sha256, length: 1 << 20,
            hashes: (0..<PieceHashes.maximumByteCount).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
        try hashes.check(size: nil)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        let json = try encoder.encode(hashes)
        #expect(json.count < 700_000)
        #expect(try JSONDecoder().decode(PieceHashes.self, from: json) == hashes)
    }

    @Test("bytes are written as RFC 4648 does, and read in that spelling alone")
    func base64() {
        let pairs = [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ]
        for (plain, text) in pairs {
            #expect(Base64.encode(Array(plain.utf8)) == text)
            #expect(Base64.decode(text) == Array(plain.utf8))
        }
        let all = (0...255).map { UInt8($0) }
        #expect(Base64.encode(all) == Data(all).base64EncodedString())
        #expect(Base64.decode(Base64.encode(all)) == all)
        for text in ["Z", "Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm=v", "Zm9v\n", "Zm-_", "é==="] {
            #expect(Base64.decode(text) == nil, "\(text)")
        }
    }

    @Test(
        "a number of connections is read as it is written",
        arguments: [
            ("auto", ConnectionCount.auto), ("1", .exactly(1)), ("16", .exactly(16)), ("0", nil), ("17", nil),
            ("Auto", nil), ("", nil), ("+4", nil), ("99999999999999999999", nil),
        ])
    func connections(text: String, count: ConnectionCount?) {
        #expect(ConnectionCount(text) == count)
        if let count { #expect(count.description == text) }
    }
}
