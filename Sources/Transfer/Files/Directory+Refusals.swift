import CLinux
import Glibc

/// Why the system does not let an entry be changed, in words that say what helps.
extension Directory {
    /// A failed call on the directory's entries.
    ///
    /// - Parameters:
    ///   - doing: as of ``TransferError/file(_:doing:)``.
    ///   - names: the entries that were to be changed.
    func refusal(_ error: Int32, doing: String, of names: String...) -> TransferError {
        var failure = TransferError.file(error, doing: doing)
        guard error == EPERM, let lock = lock(of: names) else { return failure }
        failure.message += "; " + lock
        return failure
    }

    /// What keeps even root from changing the entries or the directory; `nil` where no flag does.
    private func lock(of names: [String]) -> String? {
        for name in names + [""] {
            let place = name.isEmpty ? path : path(of: name)
            switch linux_locked(descriptor.raw, name) {
            case 1: return "\(place) is immutable until `chattr -i` makes it changeable"
            case 2: return "\(place) is append-only until `chattr -a` makes it changeable"
            default: continue
            }
        }
        return nil
    }
}

extension TransferError {
    /// A failed call that was to make a name: what a file system says of a name that it cannot have is no fault of its
    /// own, and the same would happen again.
    static func naming(_ error: Int32, doing: String) -> TransferError {
        var failure = file(error, doing: doing)
        if error == EINVAL {
            failure.code = .pathNotAllowed
            failure.message = "cannot \(doing): the file system takes no such name"
        }
        return failure
    }
}
