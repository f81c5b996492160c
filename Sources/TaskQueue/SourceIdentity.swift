import FoundationEssentials
import Glibc
import TaskModel
import Transfer

/// The state of an upload's source when the task first sent it, for the attempts after that one, in other lives of the
/// daemon too: they send that file, or nothing.
struct SourceIdentity: Equatable, Codable {
    /// Grows with changes of this form; another one is not read.
    private var form = 1
    /// What was asked for then. Where it is something else now, the state says nothing.
    private var file: String
    /// Without its secrets.
    private var url: String
    private var identity: UploadSource.Identity
    /// Which start of the machine it was: after another one a file system may have another number.
    private var boot: String

    /// - Parameter specification: the task's, without its secrets.
    init(of source: UploadSource, for specification: TaskSpecification, boot: String = thisBoot) {
        file = specification.file ?? ""
        url = specification.url
        identity = source.identity
        self.boot = boot
    }

    /// - Returns: `nil` where `bytes` are of no such form, or speak of another upload.
    init?(bytes: [UInt8], for specification: TaskSpecification) {
        guard let decoded = try? JSONDecoder().decode(SourceIdentity.self, from: Data(bytes)), decoded.form == 1,
            decoded.file == specification.file, decoded.url == specification.url
        else { return nil }
        self = decoded
    }

    /// For keeping.
    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    /// random(4); empty where the kernel does not say.
    static let thisBoot: String = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { _ = close(descriptor) }  // nothing was written to it
        var space = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &space, space.count)
        return String(decoding: space.prefix(max(0, count)).filter { $0 > 0x20 }, as: UTF8.self)
    }()

    /// - Throws: `sourceChanged` where `source` is another file, or was written to.
    func check(_ source: UploadSource) throws(TransferError) {
        var (before, now) = (identity, source.identity)
        if boot != Self.thisBoot { before.device = now.device }
        if before == now { return }
        let change =
            if before.device != now.device || before.inode != now.inode {
                "another file stands at its path"
            } else if before.size != now.size {
                "it had \(before.size) bytes and has \(now.size)"
            } else {
                "it was written to"
            }
        throw TransferError(
            .sourceChanged,
            "\(file) is not what it was when its upload began: \(change)")
    }
}
