import CLinux

/// The heap of the process.
package enum Heap {
    /// Returns free heap memory to the operating system. Takes milliseconds where much memory is free.
    package static func release() { linux_give_memory_back() }
}
