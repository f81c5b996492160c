import CLinux

/// The process's memory as the allocator keeps it.
package enum Heap {
    /// Gives what is free back to the system. Takes milliseconds where much is.
    package static func giveBack() { linux_give_memory_back() }
}
