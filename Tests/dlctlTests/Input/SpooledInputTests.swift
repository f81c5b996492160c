import Glibc
import TestSupport
import Testing

@testable import dlctl

@Suite("The copy of standard input")
struct SpooledInputTests {
    @Test("the copy has all bytes, is open for reading, and has no name")
    func copy() throws {
        let place = try TemporaryDirectory()
        let resource = Resource(size: 1_000_000)
        try resource.write(to: place.file("source"))
        let source = open(place.file("source"), O_RDONLY | O_CLOEXEC)
        defer { #expect(close(source) == 0) }
        let spool = try SpooledInput(copying: source, in: try place.makeDirectory("spool"))
        defer { #expect(close(spool.descriptor) == 0) }
        #expect(fcntl(spool.descriptor, F_GETFL) & O_ACCMODE == O_RDONLY)
        #expect(resource.difference(fromFileAt: "/proc/self/fd/\(spool.descriptor)") == nil)
        #expect(TemporaryDirectory.names(beneath: place.file("spool")).isEmpty)
    }

    @Test("a full disk is an error that names the directory", .enabled(if: getuid() == 0))
    func full() async throws {
        let place = try TemporaryDirectory()
        let small = try place.makeDirectory("small")
        let mount = try await Mount.tmpfs(at: small, bytes: 65_536)
        let source = open("/dev/zero", O_RDONLY | O_CLOEXEC)
        defer { #expect(close(source) == 0) }
        #expect {
            try SpooledInput(copying: source, in: small)
        } throws: { error in
            let failure = error as? Failure
            return failure?.message.contains("does not fit into \(small)") == true
                && failure?.message.contains("TMPDIR") == true
        }
        withExtendedLifetime(mount) {}
    }
}
