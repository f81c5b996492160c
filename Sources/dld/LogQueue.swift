import Dispatch
import Synchronization

/// The messages that wait to be written to the log.
///
/// A thread of the queue writes them in their order, so that a slow log holds nobody up. Messages beyond a limit are
/// lost; their number is logged as soon as there is room again. Without messages nothing runs.
final class LogQueue: Sendable {
    /// The maximum number of messages that wait.
    static let limit = 8_192
    /// The maximum size of the messages that wait, in bytes.
    static let byteLimit = 8 << 20

    private struct State {
        var waiting: [LogMessage] = []
        var bytes = 0
        var lost = 0
        var isWriting = false
    }

    private let state = Mutex(State())
    private let thread = DispatchQueue(label: "dld-log")
    private let write: @Sendable (LogMessage) -> Void

    /// - Parameter write: writes a message; may block.
    init(write: @escaping @Sendable (LogMessage) -> Void) {
        self.write = write
    }

    /// Adds a message. Never blocks.
    func add(_ message: LogMessage) {
        let begins = state.withLock { state in
            let bytes = state.bytes + message.size
            guard state.waiting.count < Self.limit, bytes <= Self.byteLimit else {
                state.lost += 1
                return false
            }
            state.waiting.append(message)
            state.bytes = bytes
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { thread.async { self.writeWaiting() } }
    }

    /// Waits until the messages that were added before are written.
    ///
    /// - Parameter seconds: the maximum time to wait, for a log that takes nothing.
    /// - Returns: whether they are written.
    @discardableResult
    func flush(within seconds: Int = 2) -> Bool {
        let written = DispatchSemaphore(value: 0)
        thread.async { written.signal() }
        return written.wait(timeout: .now() + .seconds(seconds)) == .success
    }

    private func writeWaiting() {
        while let (messages, lost) = take() {
            for message in messages { write(message) }
            if lost > 0 { write(.lost(lost)) }
        }
    }

    /// Removes the messages that wait.
    ///
    /// - Returns: the messages, and the number of those lost after them; `nil` if there are none.
    private func take() -> ([LogMessage], lost: Int)? {
        state.withLock { state in
            guard !state.waiting.isEmpty || state.lost > 0 else {
                state.isWriting = false
                return nil
            }
            defer { (state.waiting, state.bytes, state.lost) = ([], 0, 0) }
            return (state.waiting, state.lost)
        }
    }
}
