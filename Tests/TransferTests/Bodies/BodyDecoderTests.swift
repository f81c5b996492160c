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

    @Test("no number of received bytes overflows the limit of decoded ones")
    func limit() {
        #expect(BodyDecoder.largestSize(of: 0) == 64 << 20)
        #expect(BodyDecoder.largestSize(of: 1 << 30) == 200 << 30)
        #expect(BodyDecoder.largestSize(of: .max) == .max)
    }
}
