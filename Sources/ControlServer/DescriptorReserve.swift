import Glibc

/// Descriptors kept back, so that the control socket answers even when transfers have used up all others.
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

    /// Makes it whole again, as far as descriptors are to be had.
    func refill() {
        while descriptors.count < size {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return }
            descriptors.append(descriptor)
        }
    }

    /// Frees one descriptor for use.
    ///
    /// - Returns: `false` where none was left.
    func release() -> Bool {
        guard let descriptor = descriptors.popLast() else { return false }
        _ = Glibc.close(descriptor)  // frees the number whatever it returns (close(2))
        return true
    }
}
