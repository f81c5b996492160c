import CLinux
import Glibc
import Synchronization

/// Extended attributes of a part file: its owner, and its state when it was last closed.
extension PartFile {
    /// The attribute with the generation; it stays on the finished file.
    private static let mark = "user.dld.part"
    /// The attribute with the size and modification time, present while no process uses the part file.
    private static let leaving = "user.dld.left"
    /// The attribute with the uid of the user the file is downloaded for, if that is not the process's own user; it
    /// stays on the finished file.
    private static let beneficiary = "user.dld.user"
    /// The attribute with the ``FileVersion`` of a finished file that is kept up to date.
    private static let version = "user.dld.version"
    /// The suffix of a generation that could not be recorded on its part file and is known from the resume data only.
    private static let unmarked = "~"

    /// The random start of the numbers in generations, which no two processes have in common.
    private static let firstNumber = UInt64.random(in: 0...UInt64.max)
    private static let madeCount = Atomic<UInt64>(0)

    /// Records a new generation on an empty part file.
    ///
    /// - Parameter owner: the name of the task; with a number it becomes the generation.
    /// - Returns: the generation in the form for the resume data.
    static func markAsNew(_ descriptor: Int32, of owner: String) -> String {
        // Multiples of an odd number are all different, and those of this one are far apart.
        let count = madeCount.wrappingAdd(1, ordering: .relaxed).newValue
        return mark(descriptor, "\(owner)-\(String(firstNumber &+ count &* 0x9E37_79B9_7F4A_7C15, radix: 16))")
    }

    /// Records the generation on the part file.
    ///
    /// - Returns: the generation in the form for the resume data.
    static func mark(_ descriptor: Int32, _ generation: String) -> String {
        set(mark, of: descriptor, to: generation) ? generation : generation + unmarked
    }

    /// Whether the file is the part file of resume data with this `generation`.
    static func isMarked(_ descriptor: Int32, _ generation: String) -> Bool {
        guard let found = attribute(mark, of: descriptor) else { return generation.hasSuffix(unmarked) }
        return found == generation
    }

    /// Records the part's current size and modification time, so that a resumed download can detect changes by others.
    ///
    /// Nothing may be written to the part file after that.
    func recordState() {
        guard let information = try? descriptor.status() else { return }
        _ = Self.set(Self.leaving, of: descriptor.raw, to: Self.state(information))
    }

    /// Removes the record of size and modification time, since the part file will change from now on.
    ///
    /// - Returns: whether the part file is unchanged since the record; also `true` without a record, as after a crash.
    static func checkAndClearState(
        _ descriptor: Int32, _ information: stat, _ name: String, in directory: Directory
    ) throws(TransferError) -> Bool {
        guard let left = attribute(leaving, of: descriptor) else { return true }
        guard left == state(information) else { return false }
        guard linux_fremovexattr(descriptor, leaving) == 0 else {
            throw directory.refusal(errno, doing: "take over the part file", of: name)
        }
        return true
    }

    private static func state(_ information: stat) -> String {
        "\(information.st_size) \(information.st_mtim.tv_sec) \(information.st_mtim.tv_nsec)"
    }

    /// Whether `name` is the part file of resume data with this `generation`.
    static func isPart(_ name: String, in directory: Directory, generation: String) -> Bool {
        guard let (descriptor, status) = directory.open(reading: name) else { return false }
        return status.st_mode & S_IFMT == S_IFREG && isMarked(descriptor.raw, generation)
    }

    /// Returns the size of the finished file `name` if `owner` published it, as in an earlier process that ended before
    /// it recorded the publication.
    static func isPublished(_ name: String, in directory: Directory, by owner: String) -> Int64? {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG,
            attribute(mark, of: descriptor.raw)?.hasPrefix(owner + "-") ?? false
        else { return nil }
        return Int64(status.st_size)
    }

    /// Returns the owner that published the finished file `name`; `nil` if none is recorded.
    static func publisher(of name: String, in directory: Directory) -> String? {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        return owner(of: descriptor)
    }

    /// Returns the owner of a part file, or the publisher of a finished file; `nil` if none is recorded.
    static func owner(of descriptor: FileDescriptorOwner) -> String? {
        guard let mark = attribute(mark, of: descriptor.raw) else { return nil }
        // The generation consists of the owner, a hyphen and a random number.
        return mark.utf8.lastIndex(of: UInt8(ascii: "-")).map { String(mark[..<$0]) } ?? mark
    }

    /// Whether the finished file `name` was published by `owner`. On a file system without extended attributes the
    /// `size` is compared instead.
    ///
    /// - Returns: `nil` if there is no entry of that name.
    static func isOwn(_ name: String, in directory: Directory, of owner: String, size: Int64) -> Bool? {
        guard let (descriptor, status) = directory.open(reading: name) else { return errno == ENOENT ? nil : false }
        if let mark = attribute(mark, of: descriptor.raw) { return mark.hasPrefix(owner + "-") }
        return errno == ENOTSUP && status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == size
    }

    /// Records the user the file is downloaded for. On a file system without extended attributes, only the process's
    /// own user may replace the finished file.
    func record(user: UInt32) { _ = Self.set(Self.beneficiary, of: descriptor.raw, to: "\(user)") }

    /// Whether the finished file `name` was downloaded for `user`. Other users may write this attribute on their own
    /// files, so the caller must ensure that the file belongs to the process's user.
    static func isFetched(_ name: String, in directory: Directory, for user: UInt32) -> Bool {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG else {
            return false
        }
        return attribute(beneficiary, of: descriptor.raw) == "\(user)"
    }

    static func setVersion(_ text: String, of descriptor: Int32) { _ = set(version, of: descriptor, to: text) }

    static func version(of descriptor: Int32) -> String? { attribute(version, of: descriptor) }

    private static func set(_ name: String, of descriptor: Int32, to value: String) -> Bool {
        value.withCString { linux_fsetxattr(descriptor, name, $0, value.utf8.count) == 0 }
    }

    private static func attribute(_ name: String, of descriptor: Int32) -> String? {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { space in
            let count = linux_fgetxattr(descriptor, name, space.baseAddress, space.count)
            return count > 0 ? String(decoding: space[..<count], as: UTF8.self) : nil
        }
    }
}
