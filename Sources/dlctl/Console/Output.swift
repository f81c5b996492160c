import FoundationEssentials
import Glibc
import TaskModel

/// Buffered standard output or standard error, with large writes.
final class Output {
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private let encoder = JSONEncoder()
    /// The line that standard error gets as well if the output cannot be written.
    var lossNote: String?
    private static let bufferSize = 64 * 1024

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    }

    func text(_ text: String) {
        buffer.append(contentsOf: text.utf8)
        if buffer.count >= Self.bufferSize { flush() }
    }

    func line(_ text: String) { self.text(text + "\n") }

    /// Writes one JSON value on a line of its own.
    func json(_ value: some Encodable) {
        text(encoded(value))
        text("\n")
    }

    func encoded(_ value: some Encodable) -> String {
        // Encoding cannot fail: the values contain only strings, integers, booleans and finite numbers decoded from
        // JSON. Escape even when piped: output sent to a pager or a log may reach a terminal later.
        (try? encoder.encode(value)).map { Escape.json(String(decoding: $0, as: UTF8.self)) } ?? "null"
    }

    /// Writes the buffer. If the reader has closed the pipe, the program ends without a message, like a program that
    /// SIGPIPE ends.
    func flush() {
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)  // the next write reports any error
            } else if errno != EINTR {
                abandon(errno)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes one line to standard error at once.
    static func note(_ text: String) {
        let errors = Output(STDERR_FILENO)
        errors.line(text)
        errors.flush()
    }

    private func abandon(_ code: Int32) -> Never {
        Terminal.showCursor()
        if code != EPIPE, descriptor != STDERR_FILENO {
            Self.note("dlctl: cannot write to standard output: \(SystemText.error(code))")
            if let lossNote { Self.note(lossNote) }
        }
        exit(code == EPIPE ? 128 + SIGPIPE : ExitStatus.failed.rawValue)
    }
}
