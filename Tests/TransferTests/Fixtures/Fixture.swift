import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// A temporary directory to download into.
struct Place {
    let temporary: TemporaryDirectory
    let directory: Directory

    init() throws {
        temporary = try TemporaryDirectory()
        directory = try Directory.open(root: temporary.path)
    }

    static let partName = ".test.part"

    func target(
        _ name: String = "file", owner: String = "test-1", part: String = Place.partName,
        conflict: FileDestination.Conflict = .fail, digest: FileDigest? = nil, pieces: PieceDigests? = nil,
        modificationTime: Int64? = nil,
        reservedSpace: Int64 = 0
    ) -> DownloadTarget {
        DownloadTarget(directory: directory, partName: part, owner: owner, reservedSpace: reservedSpace) {
            (_: ResourceMetadata) throws(TransferError) in
            var destination = FileDestination(
                name: name, conflict: conflict, digest: digest, modificationTime: modificationTime)
            destination.pieces = pieces
            return destination
        }
    }

    /// The names of everything in the directory.
    var names: Set<String> { Set(TemporaryDirectory.names(beneath: temporary.path)) }

    func content(of name: String) throws -> [UInt8] { try bytes(ofFileAt: temporary.file(name)) }

    func status(of name: String) throws -> stat {
        var information = stat()
        guard lstat(temporary.file(name), &information) == 0 else { throw SystemError("lstat \(name)") }
        return information
    }
}

func bytes(ofFileAt path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("opening \(path)") }
    defer { close(descriptor) }
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return all }
        all += buffer[..<count]
    }
}

/// Returns the digest of a whole resource.
func sha256(of resource: Resource) -> FileDigest {
    var digest = RunningDigest(.sha256)
    for start in stride(from: 0, to: resource.size, by: 1 << 20) {
        resource.bytes(start..<min(resource.size, start + 1 << 20)).withUnsafeBytes { digest.update($0) }
    }
    return FileDigest(algorithm: .sha256, bytes: digest.value)
}

extension SessionConfiguration {
    /// Returns a configuration with time-outs that end before a test's time limit.
    static func test(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.connectTimeout = 60_000
        configuration.stallTimeout = 60_000
        change(&configuration)
        return configuration
    }
}

extension Result where Failure == TransferError {
    var error: TransferError? {
        if case .failure(let error) = self { return error }
        return nil
    }
}

/// A retrier that retries up to `limit` times, each after `delay` milliseconds, and records its calls.
final class CountingRetrier: RequestRetrier {
    let asked = Mutex<[(code: TransferError.Code, retryCount: Int)]>([])
    private let limit: Int
    private let delay: Int64

    init(limit: Int, delay: Int64 = 0) {
        self.limit = limit
        self.delay = delay
    }

    func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        let count = request.retryCount
        asked.withLock { $0.append((error.code, count)) }
        return count < limit ? .retry(after: delay) : .doNotRetry
    }
}

/// A list to which many threads append.
final class Notes<Element: Sendable>: Sendable {
    private let list = Mutex<[Element]>([])

    func add(_ element: Element) { list.withLock { $0.append(element) } }

    var all: [Element] { list.withLock { $0 } }
}

extension PartFile {
    /// Writes `bytes` at `offset` as a separate run.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TransferError) {
        let run = beginRun(at: offset)
        defer { end(run) }
        try write(bytes, to: run)
    }
}
