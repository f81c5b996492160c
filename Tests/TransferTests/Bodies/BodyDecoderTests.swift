import TestSupport
import Testing

@testable import Transfer

@Suite("Which codings of a body are undone")
struct BodyDecoderTests {
    @Test(
        "F73: a list is undone from its outer end, as far as it is known, down to the file's own format",
        arguments: [
            (["gzip"], "/a", 1), (["x-gzip"], "/a.tar", 1), (["deflate"], "/a", 1), ([], "/a", 0),
            (["gzip"], "/a.GZ", 0), (["gzip"], "/a.tgz", 0), (["gzip", "gzip"], "/a.tgz", 1),
            (["gzip", "deflate"], "/a", 2), (["none"], "/a", 0), (["aws-chunked"], "/a", 0),
            (["gzip", "aws-chunked"], "/a", 0), (["aws-chunked", "gzip"], "/a", 1), (["xz"], "/a.xz", 0),
            (["x-compress"], "/a.Z", 0), (["bzip2"], "/a.bz2", 0), (["zip"], "/a.zip", 0),
            (Array(repeating: "gzip", count: 50), "/a", 4),
        ])
    func undone(codings: [String], path: String, count: Int) {
        #expect(BodyDecoder.undone(codings, ofFile: [path]).count == count)
    }

    @Test("a registered coding that cannot be undone is told, unless it is the file's own format")
    func kept() {
        #expect(BodyDecoder.kept(["br"], ofFile: ["a.js"]) == "br")
        #expect(BodyDecoder.kept(["gzip", "zstd"], ofFile: ["a.zst"]) == "zstd")
        #expect(BodyDecoder.kept(["zstd"], ofFile: ["a.zst"]) == nil)
        for other in [[], ["gzip"], ["none"], ["aws-chunked"]] {
            #expect(BodyDecoder.kept(other, ofFile: ["a"]) == nil)
        }
    }

    @Test("A21: codings within each other that expand without end are refused, even where no byte comes out")
    func nested() async throws {
        let directory = try TemporaryDirectory()
        // The header of gzip, and blocks without content.
        let program = """
            import gzip, sys
            header = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3])
            open(sys.argv[1], "wb").write(gzip.compress(header + bytes([0, 0, 0, 0xFF, 0xFF]) * 20_000_000))
            """
        #expect(try await run(["python3", "-c", program, directory.file("bomb")]).succeeded)
        let body = try bytes(ofFileAt: directory.file("bomb"))
        let decoder = try #require(BodyDecoder([.gzip, .gzip]))
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: body.count, alignment: 1)
        defer { memory.deallocate() }
        memory.copyBytes(from: body)
        var decoded = 0
        var code: TransferError.Code?
        do throws(TransferError) {
            let bytes = UnsafeRawBufferPointer(memory)
            try decoder.decode(bytes) { (piece: UnsafeRawBufferPointer) throws(TransferError) in
                decoded += piece.count
            }
        } catch {
            code = error.code
        }
        #expect(code == .tooLarge && decoded == 0)
    }

    @Test("zeros behind a gzip stream are passed over, and anything else there is an error", arguments: [0, 1, 512])
    func padding(zeros: Int) throws {
        // gzip(1) of "x".
        let stream: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xAB, 0, 0, 0x83, 0x16, 0xDC, 0x8C, 1, 0, 0, 0,
        ]
        func decoded(_ bytes: [UInt8]) throws -> [UInt8] {
            let decoder = try #require(BodyDecoder([.gzip]))
            var decoded: [UInt8] = []
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            defer { buffer.deallocate() }
            buffer.copyBytes(from: bytes)
            for index in bytes.indices {
                try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[index...index])) { piece in
                    decoded += Array(piece)
                }
            }
            if let failure = decoder.failureAtEnd() { throw failure }
            return decoded
        }
        let padded = stream + Array(repeating: 0, count: zeros)
        #expect(try decoded(padded) == [0x78])
        #expect(try decoded(padded + stream) == [0x78, 0x78])
        #expect(throws: TransferError.self) { try decoded(padded + [1]) }
    }

    @Test("no number of received bytes overflows the limit of decoded ones")
    func limit() {
        #expect(BodyDecoder.largestSize(of: 0) == 64 << 20)
        #expect(BodyDecoder.largestSize(of: 1 << 30) == 200 << 30)
        #expect(BodyDecoder.largestSize(of: .max) == .max)
    }
}
