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
    /// All loops, ``first`` included.
    private let members: [Member]

    /// Starts the threads of the loops.
    ///
    /// - Throws: an error if the system has no free threads or file descriptors.
    init(count: Int, faults: LoopFaults) throws {
        var members: [Member] = []
        do {
            first = Member(try TransferLoop(name: "dld-loop-0", faults: faults))
            members.append(first)
            for number in 1..<max(1, count) {
                members.append(Member(try TransferLoop(name: "dld-loop-\(number)", faults: faults)))
            }
        } catch {
            for member in members { member.loop.stop() }
            throw error
        }
        self.members = members
    }

    /// Chooses the loop of a task that begins to run.
    func begin() -> Member {
        var (chosen, fewest) = (first, Int.max)
        for member in members {
            let tasks = member.tasks.load(ordering: .relaxed)
            if tasks < fewest { (chosen, fewest) = (member, tasks) }
        }
        chosen.tasks.wrappingAdd(1, ordering: .relaxed)
        return chosen
    }

    /// The numbers of running tasks.
    var taskCounts: [Int] { members.map { $0.tasks.load(ordering: .relaxed) } }

    /// Returns once each loop has run work that is posted now, or has been stopped.
    func turn() async {
        for member in members {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                if !member.loop.post({ _ in continuation.resume() }) { continuation.resume() }
            }
        }
    }

    func stop() {
        for member in members { member.loop.stop() }
    }
}
