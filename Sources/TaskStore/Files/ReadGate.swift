import Dispatch
import Synchronization

/// A gate for the readers of the database, which lets the store be closed when nobody reads.
///
/// A connection that is closed while a thread reads with it ends the process (sqlite3_close(3) and GRDB's pool do not
/// guard against it).
final class ReadGate: Sendable {
    private let isClosed = Mutex(false)
    private let readers = DispatchGroup()

    /// Whether the gate is closed: the reads in progress are to end.
    var isClosing: Bool { isClosed.withLock { $0 } }

    /// Performs `body`, unless the gate is closed.
    ///
    /// - Throws: ``StoreError/closed``, or the error of `body`.
    func read<Value>(_ body: () throws -> Value) throws -> Value {
        try isClosed.withLock { isClosed in
            if isClosed { throw StoreError.closed }
            readers.enter()
        }
        defer { readers.leave() }
        return try body()
    }

    /// Refuses further readers and waits for the present ones.
    func close() {
        isClosed.withLock { $0 = true }
        readers.wait()
    }
}
