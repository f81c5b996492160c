import CLinux
import Glibc

/// What stands on a part file itself, in extended attributes of it: whose it is, and how it was left.
extension PartFile {
    /// The generation; it stays on the finished file.
    private static let mark = "user.dld.part"
    /// Size and time of the last change, while nobody is at work on it.
    private static let leaving = "user.dld.left"
    /// The uid of the user for whom it is fetched, where that is another one than the process's own; it stays on the
    /// finished file.
    private static let beneficiary = "user.dld.user"
    /// At the end of a generation that could not be written on its part, so that the resume data alone know it.
    private static let unmarked = "~"

    /// - Returns: the generation as resume data are to have it.
    static func mark(_ descriptor: Int32, _ generation: String) -> String {
        set(mark, of: descriptor, to: generation) ? generation : generation + unmarked
    }

    /// Whether it is the part that resume data of this `generation` speak of.
    static func isMarked(_ descriptor: Int32, _ generation: String) -> Bool {
        guard let found = attribute(mark, of: descriptor) else { return generation.hasSuffix(unmarked) }
        return found == generation
    }

    /// Notes how the part is left, so that whoever goes on with it sees whether someone changed it meanwhile.
    ///
    /// Nobody writes to it any more.
    func leave() {
        guard let information = try? descriptor.status() else { return }
        _ = Self.set(Self.leaving, of: descriptor.raw, to: Self.state(information))
    }

    /// Takes the note away; from here on the part changes.
    ///
    /// - Returns: whether the part is as it was left; also where nothing stands on it, as after a crash.
    static func takeUp(
        _ descriptor: Int32, _ information: stat, _ name: String, in directory: Directory
    ) throws(TransferError) -> Bool {
        guard let left = attribute(leaving, of: descriptor) else { return true }
        guard left == state(information) else { return false }
        guard linux_fremovexattr(descriptor, leaving) == 0 else {
            throw directory.refusal(errno, doing: "take up the part file", of: name)
        }
        return true
    }

    private static func state(_ information: stat) -> String {
        "\(information.st_size) \(information.st_mtim.tv_sec) \(information.st_mtim.tv_nsec)"
    }

    /// Whether `name` is the part that resume data of this `generation` speak of.
    static func isPart(_ name: String, in directory: Directory, generation: String) -> Bool {
        guard let (descriptor, status) = directory.open(reading: name) else { return false }
        return status.st_mode & S_IFMT == S_IFREG && isMarked(descriptor.raw, generation)
    }

    /// Whether the finished file `name` was published by `owner` in an earlier life, which ended before it could
    /// note that down.
    ///
    /// - Returns: its size.
    static func isPublished(_ name: String, in directory: Directory, by owner: String) -> Int64? {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG,
            attribute(mark, of: descriptor.raw)?.hasPrefix(owner + "-") ?? false
        else { return nil }
        return Int64(status.st_size)
    }

    /// Who published the finished file `name`; `nil` where nothing stands on it.
    static func publisher(of name: String, in directory: Directory) -> String? {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        return owner(of: descriptor)
    }

    /// Who owns a part, or published a finished file; `nil` where nothing stands on it.
    static func owner(of descriptor: FileDescriptorOwner) -> String? {
        guard let mark = attribute(mark, of: descriptor.raw) else { return nil }
        // What follows the owner is the generation's own.
        return mark.utf8.lastIndex(of: UInt8(ascii: "-")).map { String(mark[..<$0]) } ?? mark
    }

    /// Whether the finished file `name` is the one that `owner` published; where the file system keeps no marks, its
    /// `size` has to tell.
    ///
    /// - Returns: `nil` where there is nothing of that name.
    static func isOwn(_ name: String, in directory: Directory, of owner: String, size: Int64) -> Bool? {
        guard let (descriptor, status) = directory.open(reading: name) else { return errno == ENOENT ? nil : false }
        if let mark = attribute(mark, of: descriptor.raw) { return mark.hasPrefix(owner + "-") }
        return errno == ENOTSUP && status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == size
    }

    /// Notes for whom it is fetched. Where the file system keeps no marks, nobody but the process's own user may replace
    /// the finished file.
    func note(user: UInt32) { _ = Self.set(Self.beneficiary, of: descriptor.raw, to: "\(user)") }

    /// Whether the finished file `name` was fetched for `user`. What others could have written says nothing: the caller
    /// makes sure that the file is the process's own.
    static func isFetched(_ name: String, in directory: Directory, for user: UInt32) -> Bool {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG else {
            return false
        }
        return attribute(beneficiary, of: descriptor.raw) == "\(user)"
    }

    private static func set(_ name: String, of descriptor: Int32, to value: String) -> Bool {
        value.withCString { linux_fsetxattr(descriptor, name, $0, value.utf8.count) == 0 }
    }

    private static func attribute(_ name: String, of descriptor: Int32) -> String? {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { space in
            let count = linux_fgetxattr(descriptor, name, space.baseAddress, space.count)
            return count > 0 ? String(decoding: space[..<count], as: UTF8.self) : nil
        }
    }
}
