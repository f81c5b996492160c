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

    @Test("no number of received bytes overflows the limit of decoded ones")
    func limit() {
        #expect(BodyDecoder.largestSize(of: 0) == 64 << 20)
        #expect(BodyDecoder.largestSize(of: 1 << 30) == 200 << 30)
        #expect(BodyDecoder.largestSize(of: .max) == .max)
    }
}
