import CLinux
import Curl
import FoundationEssentials
import Glibc
import Testing

@testable import ControlServer

@Suite("The time slice of the threads that serve commands")
struct TimeSliceTests {
    @Test("a shorter slice is accepted, and the nice value stays", .timeLimit(.minutes(1)))
    func niceValue() async {
        let outcome: [Int32] = await withCheckedContinuation { continuation in
            let started = SystemThread.start(name: "slice") {
                let process = __priority_which_t(PRIO_PROCESS.rawValue)
                // A thread of this program cannot change its nice value by the number 0 (CDescriptors).
                let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? ""
                let thread = path.split(separator: "/").last.flatMap { id_t($0) } ?? 0
                let first = setpriority(process, thread, 7)
                let second = linux_set_time_slice(200_000)
                continuation.resume(returning: [first, second, getpriority(process, 0)])
            }
            if !started { continuation.resume(returning: []) }
        }
        #expect(outcome == [0, 0, 7])
    }
}
