import Glibc
import Synchronization

/// A counter of the internal faults of one or more loops, which passes each to a handler that logs it.
package final class LoopFaults: Sendable {
    private let counter = Atomic<Int>(0)
    private let isExpected: Bool
    private let handler: @Sendable (String) -> Void

    /// - Parameters:
    ///   - isExpected: whether a test provokes the faults. Debug builds append other faults to the file that the
    ///     environment variable `DLD_FAULT_REPORT` names, so that a full test run fails because of them.
    ///   - handler: called with a description of each fault on the loop's thread; must not block.
    package init(isExpected: Bool = false, _ handler: @escaping @Sendable (String) -> Void = { _ in }) {
        self.isExpected = isExpected
        self.handler = handler
    }

    /// The number of faults so far.
    package var count: Int { counter.load(ordering: .relaxed) }

    func report(_ description: String) {
        counter.wrappingAdd(1, ordering: .relaxed)
        handler(description)
        #if DEBUG
        if !isExpected { Self.append("\(description)\n") }
        #endif
    }

    #if DEBUG
    private static func append(_ line: String) {
        guard let path = getenv("DLD_FAULT_REPORT") else { return }
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { return }
        _ = write(descriptor, line, line.utf8.count)  // a failure could not be reported
        _ = close(descriptor)  // as above
    }
    #endif
}
