import TaskModel
import Testing

@Suite("Checksums")
struct ChecksumTests {
    @Test(
        "an algorithm goes by its name in any spelling, the digits in lower case",
        arguments: [
            ("sha256", Checksum.Algorithm.sha256), ("SHA-256", .sha256), ("sha-512", .sha512), ("Sha1", .sha1),
            ("MD5", .md5),
        ])
    func algorithms(name: String, algorithm: Checksum.Algorithm) throws {
        let hex = String(repeating: "aB", count: algorithm.byteCount)
        let checksum = try Checksum(parsing: "\(name):\(hex)")
        #expect(checksum.algorithm == algorithm)
        #expect(checksum.description == "\(algorithm.rawValue):\(hex.lowercased())")
        #expect(try Checksum(parsing: checksum.description) == checksum)
    }

    @Test("digits alone are of the algorithm with as many", arguments: Checksum.Algorithm.allCases)
    func bare(algorithm: Checksum.Algorithm) throws {
        let hex = String(repeating: "aB", count: algorithm.byteCount)
        #expect(try Checksum(parsing: hex) == Checksum(parsing: "\(algorithm.rawValue):\(hex)"))
        #expect(throws: FieldError.self) { try Checksum(parsing: hex + "0") }
        #expect(throws: FieldError.self) { try Checksum(parsing: "g" + hex.dropFirst()) }
    }

    @Test(
        "what is no digest is refused",
        arguments: [
            "", "md5", "md5:", "crc32:00000000", ":00", "md5:d41d8cd98f00b204e9800998ecf8427",
            "md5:d41d8cd98f00b204e9800998ecf8427e0", "md5:d41d8cd98f00b204e9800998ecf8427g",
            "md5: d41d8cd98f00b204e9800998ecf8427", "md5:d41d8cd98f00b204e9800998ecf8427e\n",
            "md5:d41d8cd98f00b204e9800998ecf８", "md5:d41d8cd98f00b204:9800998ecf8427e",
            "sha-256:d41d8cd98f00b204e9800998ecf8427e",
        ])
    func refused(text: String) {
        #expect { try Checksum(parsing: text) } throws: { ($0 as? FieldError)?.field == "checksum" }
    }
}
