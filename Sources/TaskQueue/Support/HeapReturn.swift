import CLinux

/// The return of freed heap memory and of program pages to the operating system, at the times that ``HeapLevel`` decides.
struct HeapReturn {
    private var level = HeapLevel()
    private let work = BlockingWork(name: "dld-heap")

    /// Whether memory must be returned at one of the next checks.
    var isPending: Bool { level.isPending }

    mutating func tasksEnded(_ count: Int, running: Int) { level.record(running, ended: count) }

    /// Returns memory if it is time. Must be called at equal intervals.
    mutating func check(running: Int) {
        guard level.check(at: running) else { return }
        // On another thread, since it walks the whole heap and takes a while.
        Task { [work] in
            await work.run {
                linux_give_memory_back()
                linux_release_program_pages()
            }
        }
    }
}
