import FoundationEssentials
import Glibc
import TaskModel
import Transfer

/// The state of an upload's source when the task first sent it. Later attempts, also of later daemon processes, send
/// the same file in the same state or fail.
struct SourceIdentity: Equatable, Codable {
    /// The version of the format. Data with another version is ignored.
    private var form = 1
    /// The requested source at that time. The state is ignored where the task now names another one.
    private var file: String
    /// The URL without its secrets.
    private var url: String
    private var identity: UploadSource.Identity
    /// The machine's boot id. After a reboot a file system may have a different device number.
    private var boot: String

    /// Creates the identity of an open source.
    ///
    /// - Parameter specification: the task's options, without its secrets.
    init(of source: UploadSource, for specification: TaskSpecification, boot: String = thisBoot) {
        file = specification.file ?? ""
        url = specification.url
        identity = source.identity
        self.boot = boot
    }

    /// Decodes a stored identity.
    ///
    /// - Returns: `nil` where `bytes` have another format, or belong to another upload.
    init?(bytes: [UInt8], for specification: TaskSpecification) {
        guard let decoded = try? JSONDecoder().decode(SourceIdentity.self, from: Data(bytes)), decoded.form == 1,
            decoded.file == specification.file, decoded.url == specification.url
        else { return nil }
        self = decoded
    }

    /// The encoded form, for the store.
    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    /// The boot id from the kernel (random(4)); empty where it is not available.
    static let thisBoot: String = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { _ = close(descriptor) }  // cannot lose data: nothing was written
        var space = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &space, space.count)
        return String(decoding: space.prefix(max(0, count)).filter { $0 > 0x20 }, as: UTF8.self)
    }()

    /// Checks that `source` is unchanged.
    ///
    /// - Throws: `sourceChanged` where `source` is another file or has been modified.
    func check(_ source: UploadSource) throws(TransferError) {
        var (before, now) = (identity, source.identity)
        if boot != Self.thisBoot { before.device = now.device }
        if before == now { return }
        let change =
            if before.device != now.device || before.inode != now.inode {
                "another file is at its path"
            } else if before.size != now.size {
                "it had \(before.size) bytes and has \(now.size)"
            } else {
                "it was written to"
            }
        throw TransferError(
            .sourceChanged,
            "\(file) changed after its upload began: \(change)")
    }
}
