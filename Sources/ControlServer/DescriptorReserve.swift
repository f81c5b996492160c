import Glibc

/// A reserve of file descriptors, so that the control socket responds even when transfers have used up all others.
/// Belongs to one thread.
final class DescriptorReserve {
    private let size: Int
    private var descriptors: [Int32] = []

    init(size: Int = 8) {
        self.size = size
        refill()
    }

    deinit {
        while release() {}
    }

    var count: Int { descriptors.count }

    /// Opens descriptors until the reserve is full or no more are available.
    func refill() {
        while descriptors.count < size {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return }
            descriptors.append(descriptor)
        }
    }

    /// Frees one descriptor for use.
    ///
    /// - Returns: `false` if the reserve is empty.
    func release() -> Bool {
        guard let descriptor = descriptors.popLast() else { return false }
        _ = Glibc.close(descriptor)  // frees the number whatever it returns (close(2))
        return true
    }
}
