import Glibc
import Synchronization

/// The signals of a program with a full screen. Signals that end it restore the terminal first; the others wake the
/// main thread.
enum ScreenSignals {
    private static let wakeDescriptor = Atomic<Int32>(-1)
    private static let isResized = Atomic(false)
    private static let isContinued = Atomic(false)
    private static let isStopping = Atomic(false)

    /// Signals from outside. The exit status is 128 plus the number, as a shell reports it.
    private static let endings = [
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ,
    ]
    /// Signals of a defect in the program.
    private static let defects = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGSYS]

    static func install(waking descriptor: Int32) {
        wakeDescriptor.store(descriptor, ordering: .sequentiallyConsistent)
        // The lazy static variables are initialised here, so that no signal handler is the first to use them.
        _ = (takeResized(), takeContinued(), takeStopping())
        TerminalMode.leave()
        for number in endings {
            // `signal` fails only for an unknown signal.
            _ = signal(number) { number in
                TerminalMode.leave()
                _exit(128 + number)
            }
        }
        for number in defects {
            // `signal` fails only for an unknown signal.
            _ = signal(number) { number in
                TerminalMode.leave()
                _ = signal(number, SIG_DFL)  // cannot fail
                _ = raise(number)  // ends the process; if not, the faulting instruction does
            }
        }
        // `signal` fails only for an unknown signal.
        _ = signal(SIGWINCH) { _ in
            ScreenSignals.isResized.store(true, ordering: .sequentiallyConsistent)
            ScreenSignals.wake()
        }
        // `signal` fails only for an unknown signal.
        _ = signal(SIGCONT) { _ in
            ScreenSignals.isContinued.store(true, ordering: .sequentiallyConsistent)
            ScreenSignals.wake()
        }
        handleStop()
    }

    /// Makes SIGTSTP wake the main thread, which restores the terminal and then stops.
    static func handleStop() {
        // `signal` fails only for an unknown signal.
        _ = signal(SIGTSTP) { _ in
            ScreenSignals.isStopping.store(true, ordering: .sequentiallyConsistent)
            ScreenSignals.wake()
        }
    }

    /// Stops the process as SIGTSTP does by default. Returns when it continues.
    static func stop() {
        _ = signal(SIGTSTP, SIG_DFL)  // cannot fail
        _ = raise(SIGTSTP)  // a process group without a shell is not stopped, and goes on
        handleStop()
    }

    private static func wake() {
        var byte: UInt8 = 0
        let code = errno
        _ = write(wakeDescriptor.load(ordering: .sequentiallyConsistent), &byte, 1)  // a full pipe wakes it too
        errno = code
    }

    static func takeResized() -> Bool { isResized.exchange(false, ordering: .sequentiallyConsistent) }
    static func takeContinued() -> Bool { isContinued.exchange(false, ordering: .sequentiallyConsistent) }
    static func takeStopping() -> Bool { isStopping.exchange(false, ordering: .sequentiallyConsistent) }
}
