import ControlProtocol
import Dispatch
import Glibc
import Testing

@testable import ControlServer

@Suite("Who is at the other end (A14)")
struct PeerTests {
    @Test("the kernel says who connected")
    func credentials() async throws {
        let handler = ScriptedHandler(commands: { _, peer in .success([Int(peer.uid), Int(peer.gid), Int(peer.pid)]) })
        try await withServer(handler) { _, path in
            let answer = try await TestClient(connectingTo: path).ask(request(1))
            #expect(answer == #"{"id":1,"jsonrpc":"2.0","result":[\#(getuid()),\#(getgid()),\#(getpid())]}"#)
        }
    }

    @Test("what is not a Unix socket has no peer")
    func noPeer() {
        #expect(Peer(ofSocket: -1) == nil)
        let internet = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(internet) }
        #expect(Peer(ofSocket: internet) == nil)
    }

    @Test("who is not permitted gets one line that says so, and the end")
    func refused() async throws {
        try await withServer(authorize: { _ in false }) { _, path in
            let client = try TestClient(connectingTo: path)
            #expect(
                try await client.line()
                    == #"{"error":{"code":-32003,"data":{"code":"permission-denied"},"#
                    + #""message":"this user may not use this daemon"},"id":null,"jsonrpc":"2.0"}"#)
            #expect(try await client.line() == nil)
        }
    }

    @Test(
        "another user is seen as that user: refused where only root is permitted, served where he is",
        .enabled(if: geteuid() == 0 && access("/usr/bin/perl", X_OK) == 0, "needs root and perl"))
    func secondUser() async throws {
        let handler = ScriptedHandler(commands: { _, peer in .success(["\(peer.uid):\(peer.gid)"]) })
        let refusal = try await withServer(handler, mode: 0o666, authorize: { $0.uid == 0 }) { _, path in
            try await askAsNobody(path)
        }
        #expect(refusal.contains(#""code":-32003"#))
        let answer = try await withServer(handler, mode: 0o666, authorize: { $0.uid == 65534 }) { _, path in
            try await askAsNobody(path)
        }
        #expect(answer.contains(#""result":["65534:65534"]"#))
    }

    /// Connects from a process that runs as user nobody.
    ///
    /// - Returns: the received line.
    private func askAsNobody(_ path: String) async throws -> String {
        let parent = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        try #require(chmod(parent, 0o755) == 0)
        let script = """
            use Socket; $SIG{PIPE} = 'IGNORE'; alarm 20;
            $) = "65534 65534"; $( = 65534; $< = 65534; $> = 65534; die if $< != 65534 || $> != 65534;
            socket(S, PF_UNIX, SOCK_STREAM, 0) or die; connect(S, pack_sockaddr_un($ARGV[0])) or die;
            syswrite(S, $ARGV[1] . "\\n"); print scalar(<S>);
            """
        let (output, input) = try makePipe()
        defer { Glibc.close(output) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, 1)
        let words = ["perl", "-e", script, path, request(1)]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let spawned = posix_spawn(&pid, "/usr/bin/perl", &actions, nil, &arguments, environ)
        Glibc.close(input)
        try #require(spawned == 0)
        let child = pid
        return await withCheckedContinuation { continuation in
            DispatchQueue(label: "nobody").async {
                var text: [UInt8] = []
                var chunk = [UInt8](repeating: 0, count: 4096)
                while true {
                    let count = read(output, &chunk, chunk.count)
                    guard count > 0 else { break }
                    text += chunk[..<count]
                }
                var status: Int32 = 0
                waitpid(child, &status, 0)
                continuation.resume(returning: String(decoding: text, as: UTF8.self))
            }
        }
    }
}
