import FoundationEssentials
import Glibc
import Synchronization

/// A program on a terminal of its own.
package final class PseudoTerminal: Sendable {
    private let controller: Int32
    /// The program, a session leader whose controlling terminal is this one.
    package let child: ChildProcess
    // The macros of <asm-generic/ioctls.h>, which Swift does not import.
    private static let getNumber: UInt = 0x8004_5430
    private static let unlock: UInt = 0x4004_5431
    private let received = Mutex<[UInt8]>([])

    /// Starts a program on a terminal with this size.
    package init(
        _ arguments: [String], environment changes: [String: String?] = [:], columns: UInt16 = 80, rows: UInt16 = 24
    ) throws {
        let controller = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard controller >= 0 else { throw SystemError("/dev/ptmx") }
        var number: UInt32 = 0
        var lock: Int32 = 0
        guard ioctl(controller, Self.unlock, &lock) == 0, ioctl(controller, Self.getNumber, &number) == 0 else {
            let error = SystemError("ioctl")
            close(controller)
            throw error
        }
        let path = "/dev/pts/\(number)"
        self.controller = controller
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard ioctl(controller, UInt(TIOCSWINSZ), &size) == 0 else { throw SystemError("ioctl") }
        // A session leader without a terminal gets the first one that it opens.
        let shell = ["setsid", "sh", "-c", "exec \"$@\" <\"$0\" >\"$0\" 2>&1", path]
        child = try ChildProcess(
            shell + arguments,
            environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": nil].merging(changes) { $1 })
    }

    deinit {
        child.end()
        close(controller)
    }

    /// Everything that the program has written so far.
    package var output: String {
        received.withLock { bytes in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(controller, &buffer, buffer.count)
                guard count > 0 else { break }
                bytes += buffer[..<count]
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Types text.
    package func type(_ text: String) { type(Array(text.utf8)) }

    package func type(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(controller, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else {
                // The program reads too slowly, or writes what nobody has read.
                _ = output
                usleep(1_000)
                if child.poll() != nil { return }
            }
        }
    }

    package func resize(columns: UInt16, rows: UInt16) throws {
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard ioctl(controller, UInt(TIOCSWINSZ), &size) == 0 else { throw SystemError("ioctl") }
    }

    /// Whether the terminal edits lines and turns Ctrl-C into a signal, as a shell expects it.
    package var isCooked: Bool {
        var settings = termios()
        guard tcgetattr(controller, &settings) == 0 else { return false }
        let flags = tcflag_t(ICANON | ECHO | ISIG)
        return settings.c_lflag & flags == flags
    }

    /// Waits until the program has written a text.
    package func wait(for text: String, within limit: Duration = .seconds(30)) async throws {
        do {
            try await eventually(that: "'\(text)' is on the terminal", within: limit) {
                output.contains(text) || child.poll() != nil
            }
        } catch {
            throw Unusable(reason: "no '\(text)' in: \(output.suffix(3_000).debugDescription)")
        }
        guard output.contains(text) else {
            throw Unusable(reason: "it ended without '\(text)': \(output.suffix(3_000).debugDescription)")
        }
    }
}
