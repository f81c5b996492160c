import Glibc
import Synchronization

/// An FTP server on loopback (RFC 959) with scripted misbehaviour that no correct server shows.
///
/// Any user can log in. Data connections are passive.
package final class ScriptedFTPServer: Sendable {
    /// The files and behaviour of the server, read again at each command.
    package struct Manner: Sendable {
        package var files: [String: [UInt8]] = [:]
        /// The modification time as `YYYYMMDDHHMMSS`; `nil` if MDTM is not supported.
        package var time: String? = "20240229120000"
        /// Whether SIZE is supported.
        package var tellsSizes = true
        /// Replies that replace the server's own, by command, such as `550 no`. The command is then not executed. After
        /// an empty reply the server sends nothing more. `stored` stands for the end of a file.
        package var replies: [String: String] = [:]
        /// The reply before the data of a file.
        package var opening = "150 here it comes"
        /// The reply after a file that was sent whole; empty for no reply.
        package var closing = "226 that was it"
        /// The numbers of bytes after which the data of successive RETR commands ends; later files are sent whole.
        package var cuts: [Int] = []
        /// The reply after data that was cut.
        package var replyAfterCut = "426 Connection closed; transfer aborted."
        /// The number of bytes at the end of an upload that the server silently discards.
        package var loses = 0
        /// The address in the reply to PASV.
        package var passiveAddress = "127,0,0,1"
        /// Whether RNTO to an existing file is refused.
        package var keepsExistingFiles = false

        package init(files: [String: [UInt8]] = [:]) { self.files = files }
    }

    package let port: Int
    private let listener: Int32
    private struct State {
        var manner: Manner
        var commands: [String] = []
        var bytesSent = 0
        var cuts = 0
    }
    private let state: Mutex<State>

    package init(_ manner: Manner) throws {
        state = Mutex(State(manner: manner))
        (listener, port) = try listenOnLoopback(backlog: 64)
        try startThread { [weak self, listener] in
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard connection >= 0 else { return }
                guard let self else {
                    close(connection)
                    return
                }
                try? startThread { Conversation(self, StreamSocket(adopting: connection)).run() }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    package func url(_ path: String) -> String { "ftp://127.0.0.1:\(port)\(path)" }

    package var manner: Manner {
        get { state.withLock { $0.manner } }
        set { state.withLock { $0.manner = newValue } }
    }

    /// The commands so far, in order.
    package var commands: [String] { state.withLock { $0.commands } }
    /// The number of file bytes sent over all data connections.
    package var bytesSent: Int { state.withLock { $0.bytesSent } }

    fileprivate func record(_ command: String) { state.withLock { $0.commands.append(command) } }
    fileprivate func recordSent(_ count: Int) { state.withLock { $0.bytesSent += count } }
    fileprivate func change(_ body: (inout [String: [UInt8]]) -> Void) { state.withLock { body(&$0.manner.files) } }

    fileprivate func nextCut() -> Int? {
        state.withLock { state in
            guard state.cuts < state.manner.cuts.count else { return nil }
            state.cuts += 1
            return state.manner.cuts[state.cuts - 1]
        }
    }

    /// A control connection.
    private final class Conversation {
        private let server: ScriptedFTPServer
        private let control: StreamSocket
        private var passive: Int32 = -1
        private var offset = 0
        private var renaming = ""

        init(_ server: ScriptedFTPServer, _ control: consuming StreamSocket) {
            self.server = server
            self.control = control
        }

        deinit { if passive >= 0 { close(passive) } }

        private func say(_ line: String) { control.send("\(line)\r\n".utf8) }

        func run() {
            if let greeting = server.manner.replies["connect"] {
                if greeting.isEmpty { return waitForEver() }
                say(greeting)
            } else {
                say("220 ready")
            }
            while let text = try? control.readLine() {
                let line = text.hasSuffix("\r") ? String(text.dropLast()) : text
                server.record(line)
                let word = String(line.prefix { $0 != " " })
                if let reply = server.manner.replies[word] {
                    if reply.isEmpty { return waitForEver() }
                    say(reply)
                } else {
                    carryOut(word, String(line.dropFirst(word.count + 1)))
                }
                if word == "QUIT" { return }
            }
        }

        /// Reads from the client until it disconnects.
        private func waitForEver() {
            while let bytes = try? control.receive(), !bytes.isEmpty {}
        }

        private func carryOut(_ word: String, _ argument: String) {
            let manner = server.manner
            let file = manner.files[argument]
            switch word {
            case "USER": say("331 password?")
            case "PASS": say("230 welcome")
            case "PWD": say("257 \"/\"")
            case "TYPE", "NOOP": say("200 yes")
            case "QUIT": say("221 bye")
            case "EPSV": listenForData { port in say("229 come (|||\(port)|)") }
            case "PASV": listenForData { port in say("227 come (\(manner.passiveAddress),\(port >> 8),\(port & 255))") }
            case "SIZE" where manner.tellsSizes: say(file.map { "213 \($0.count)" } ?? "550 no such file")
            case "MDTM" where manner.time != nil: say(file != nil ? "213 \(manner.time ?? "")" : "550 no such file")
            case "REST":
                offset = Int(argument) ?? 0
                say("350 from there")
            case "RETR": retrieve(file)
            case "STOR": store(argument)
            case "DELE":
                server.change { $0[argument] = nil }
                say(file != nil ? "250 gone" : "550 no such file")
            case "RNFR":
                renaming = argument
                say(file != nil ? "350 and now?" : "550 no such file")
            case "RNTO" where file != nil && manner.keepsExistingFiles: say("553 there is one already")
            case "RNTO":
                server.change { files in
                    files[argument] = files[renaming]
                    files[renaming] = nil
                }
                say("250 renamed")
            default: say("500 what?")
            }
        }

        private func listenForData(_ tell: (Int) -> Void) {
            if passive >= 0 { close(passive) }
            guard let (descriptor, port) = try? listenOnLoopback(backlog: 1) else { return say("425 no port") }
            passive = descriptor
            tell(port)
        }

        private func data() -> StreamSocket? {
            let connection = accept(passive, nil, nil)
            close(passive)
            passive = -1
            return connection >= 0 ? StreamSocket(adopting: connection) : nil
        }

        private func retrieve(_ file: [UInt8]?) {
            defer { offset = 0 }
            guard let file else { return say("550 no such file") }
            say(server.manner.opening)
            guard let connection = data() else { return say("425 nobody came") }
            var rest = file[min(offset, file.count)...]
            let cut = server.nextCut()
            if let cut { rest = rest.prefix(cut) }
            while !rest.isEmpty, connection.send(rest.prefix(65_536)) {
                server.recordSent(min(65_536, rest.count))
                rest = rest.dropFirst(65_536)
            }
            close(consume connection)
            let reply = cut == nil ? server.manner.closing : server.manner.replyAfterCut
            if !reply.isEmpty { say(reply) }
        }

        private func close(_ connection: consuming StreamSocket) {}
        private func close(_ descriptor: Int32) { Glibc.close(descriptor) }

        private func store(_ name: String) {
            server.change { $0[name] = [] }
            say("150 go on")
            guard let connection = data() else { return say("425 nobody came") }
            let bytes = ((try? connection.readToEnd()) ?? []).dropLast(server.manner.loses)
            server.change { $0[name] = Array(bytes) }
            say(server.manner.replies["stored"] ?? "226 got it")
        }
    }
}
