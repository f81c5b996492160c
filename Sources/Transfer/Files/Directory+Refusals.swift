import CLinux
import Glibc

/// Error messages that explain why an entry cannot be changed, and what resolves it.
extension Directory {
    /// Returns the error for a failed system call on the directory's entries.
    ///
    /// - Parameters:
    ///   - doing: as in ``TransferError/file(_:doing:)``.
    ///   - names: the entries that were to be changed.
    func refusal(_ error: Int32, doing: String, of names: String...) -> TransferError {
        var failure = TransferError.file(error, doing: doing)
        guard error == EPERM, let lock = lock(of: names) else { return failure }
        failure.message += "; " + lock
        return failure
    }

    /// Returns the reason that prevents even root from changing the entries or the directory; `nil` if no inode flag
    /// does.
    private func lock(of names: [String]) -> String? {
        for name in names + [""] {
            let place = name.isEmpty ? path : path(of: name)
            switch linux_locked(descriptor.raw, name) {
            case Int32(LINUX_LOCK_IMMUTABLE): return "\(place) is immutable; remove this attribute with \"chattr -i\""
            case Int32(LINUX_LOCK_APPEND_ONLY):
                return "\(place) is append-only; remove this attribute with \"chattr -a\""
            default: continue
            }
        }
        return nil
    }
}

extension TransferError {
    /// Returns the error for a failed call that was to create a name. A name that the file system does not support
    /// (`EINVAL`) is not a fault of the file system, and a retry would fail again.
    static func naming(_ error: Int32, doing: String) -> TransferError {
        var failure = file(error, doing: doing)
        if error == EINVAL {
            failure.code = .pathNotAllowed
            failure.message = "cannot \(doing): the file system does not allow this name"
        }
        return failure
    }
}
