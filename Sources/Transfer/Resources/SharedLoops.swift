import Curl
import Synchronization

/// The event loops of a session's HTTP tasks, among which the running tasks are balanced.
///
/// Each loop keeps its own idle connections. A new task goes to the loop with the fewest running tasks, and to the
/// first of several such loops. Consecutive requests to a host therefore use one connection, and many concurrent ones
/// open few more connections than there are requests.
final class SharedLoops: Sendable {
    /// A loop with the number of its running tasks.
    final class Member: Sendable {
        let loop: TransferLoop
        fileprivate let tasks = Atomic<Int>(0)

        fileprivate init(_ loop: TransferLoop) { self.loop = loop }

        /// Records that a task no longer runs.
        func end() { tasks.wrappingSubtract(1, ordering: .relaxed) }
    }

    let first: Member
    private let others: [Member]

    /// Starts the threads of the loops.
    ///
    /// - Throws: an error if the system has no free threads or file descriptors.
    init(count: Int, faults: LoopFaults) throws {
        first = Member(try TransferLoop(name: "dld-loop-0", faults: faults))
        do {
            others = try (1..<max(1, count)).map { Member(try TransferLoop(name: "dld-loop-\($0)", faults: faults)) }
        } catch {
            first.loop.stop()
            throw error
        }
    }

    /// Chooses the loop of a task that begins to run.
    func begin() -> Member {
        var (chosen, fewest) = (first, first.tasks.load(ordering: .relaxed))
        for member in others {
            let tasks = member.tasks.load(ordering: .relaxed)
            if tasks < fewest { (chosen, fewest) = (member, tasks) }
        }
        chosen.tasks.wrappingAdd(1, ordering: .relaxed)
        return chosen
    }

    /// The numbers of running tasks.
    var taskCounts: [Int] { ([first] + others).map { $0.tasks.load(ordering: .relaxed) } }

    func stop() {
        first.loop.stop()
        for member in others { member.loop.stop() }
    }
}

/// The event loop of a running task.
enum TaskLoop {
    case shared(SharedLoops.Member)
    /// A loop of ``RemoteLoops``, which is kept as long as the lease.
    case leased(LoopLease)

    var loop: TransferLoop {
        switch self {
        case .shared(let member): member.loop
        case .leased(let lease): lease.loop
        }
    }
}
