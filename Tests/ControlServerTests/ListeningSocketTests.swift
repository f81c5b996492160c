import Glibc
import Testing

@testable import ControlServer

@Suite("Making and taking over listening sockets")
struct ListeningSocketTests {
    private func mode(_ path: String) throws -> UInt32 {
        var status = stat()
        try #require(lstat(path, &status) == 0)
        return status.st_mode & 0o7777
    }

    private func group(_ path: String) throws -> UInt32 {
        var status = stat()
        try #require(lstat(path, &status) == 0)
        return status.st_gid
    }

    private func touch(_ path: String) throws {
        let descriptor = open(path, O_CREAT | O_WRONLY, 0o600)
        try #require(descriptor >= 0)
        Glibc.close(descriptor)
    }

    @Test("the socket has the mode asked for, whatever the umask says", arguments: [0o600, 0o660, 0o666] as [UInt32])
    func mode(_ wanted: UInt32) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/s"
            let socket = try ListeningSocket(
                making: ListeningSocketPath(path: path, mode: wanted, replacesStale: false))
            #expect(try mode(path) == wanted)
            Glibc.close(socket.descriptor)
        }
    }

    @Test("before its permissions are set, nobody but the owner could open it")
    func privateFromBirth() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/s"
            let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { Glibc.close(descriptor) }
            try ListeningSocket.bindPrivately(descriptor, path, mode: 0o666)
            #expect(try mode(path) == 0o600)
        }
    }

    @Test("it goes to the group asked for, and a missing parent is made for that group", .enabled(if: geteuid() == 0))
    func group() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/dld/s"
            let socket = try ListeningSocket(
                making: ListeningSocketPath(path: path, mode: 0o660, group: 65534, replacesStale: false))
            #expect(try mode(path) == 0o660)
            #expect(try group(path) == 65534)
            #expect(try mode(directory + "/dld") == 0o750)
            #expect(try group(directory + "/dld") == 65534)
            Glibc.close(socket.descriptor)
        }
    }

    @Test("without a group a missing parent is made for the owner alone; a present one stays as it is")
    func parent() async throws {
        try await withTemporaryDirectory { directory in
            let socket = try ListeningSocket(
                making: ListeningSocketPath(path: directory + "/new/s", replacesStale: false))
            #expect(try mode(directory + "/new") == 0o700)
            Glibc.close(socket.descriptor)
            chmod(directory, 0o711)
            let beside = try ListeningSocket(making: ListeningSocketPath(path: directory + "/s", replacesStale: false))
            #expect(try mode(directory) == 0o711)
            Glibc.close(beside.descriptor)
        }
    }

    @Test("a path that is too long, relative or broken is refused with its reason")
    func badPaths() async throws {
        try await withTemporaryDirectory { directory in
            let longest = directory + "/" + String(repeating: "s", count: 106 - directory.utf8.count)
            let socket = try ListeningSocket(making: ListeningSocketPath(path: longest, replacesStale: false))
            Glibc.close(socket.descriptor)
            #expect(throws: ListeningSocketError.pathTooLong(longest + "s")) {
                try ListeningSocket(making: ListeningSocketPath(path: longest + "s", replacesStale: false))
            }
            #expect(ListeningSocketError.pathTooLong(longest + "s").description.contains("108 bytes"))
            for path in ["", "relative.sock", directory + "/a\0b"] {
                #expect(throws: ListeningSocketError.invalidPath(path)) {
                    try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
                }
            }
        }
    }

    @Test("a stale socket is replaced only for the one who holds the lock")
    func stale() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/s"
            let dead = try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
            Glibc.close(dead.descriptor)
            #expect(throws: ListeningSocketError.inUse(path)) {
                try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
            }
            let socket = try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: true))
            Glibc.close(socket.descriptor)
        }
    }

    @Test("a socket that somebody listens on is not replaced, lock or no lock")
    func alive() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/s"
            let living = try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
            try #require(listen(living.descriptor, 1) == 0)
            #expect(throws: ListeningSocketError.inUse(path)) {
                try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: true))
            }
            Glibc.close(living.descriptor)
        }
    }

    @Test("what is not a socket is never touched, a link to a socket included")
    func notASocket() async throws {
        try await withTemporaryDirectory { directory in
            try touch(directory + "/file")
            let real = try ListeningSocket(making: ListeningSocketPath(path: directory + "/s", replacesStale: false))
            Glibc.close(real.descriptor)
            symlink(directory + "/s", directory + "/link")
            for name in ["file", "link"] {
                let path = directory + "/" + name
                #expect(throws: ListeningSocketError.notASocket(path)) {
                    try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: true))
                }
                #expect(access(path, F_OK) == 0)
            }
        }
    }

    @Test("in the end its name goes, unless another socket has taken it")
    func unlinking() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/s"
            let first = try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
            // Both sockets exist at once, so that the second cannot reuse the first one's inode.
            rename(path, directory + "/kept")
            let second = try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
            first.unlinkIfMade()
            #expect(access(path, F_OK) == 0)
            second.unlinkIfMade()
            #expect(access(path, F_OK) != 0)
            Glibc.close(first.descriptor)
            Glibc.close(second.descriptor)
        }
    }

    @Test("only a listening Unix stream socket can be taken over")
    func adopting() async throws {
        try await withTemporaryDirectory { directory in
            let made = try ListeningSocket(making: ListeningSocketPath(path: directory + "/s", replacesStale: false))
            defer { Glibc.close(made.descriptor) }
            #expect(throws: ListeningSocketError.notListening(descriptor: made.descriptor)) {
                try ListeningSocket(adopting: made.descriptor)
            }
            try #require(listen(made.descriptor, 1) == 0)
            let adopted = try ListeningSocket(adopting: made.descriptor)
            adopted.unlinkIfMade()
            #expect(access(directory + "/s", F_OK) == 0)
            #expect(throws: ListeningSocketError.notListening(descriptor: -1)) { try ListeningSocket(adopting: -1) }
            let internet = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { Glibc.close(internet) }
            try #require(listen(internet, 1) == 0)
            #expect(throws: ListeningSocketError.notListening(descriptor: internet)) {
                try ListeningSocket(adopting: internet)
            }
        }
    }
}
