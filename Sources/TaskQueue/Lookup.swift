import FoundationEssentials
import TaskFiles
import TaskModel
import Transfer

/// What a server says of a task's file, and is asked before the file is.
struct Lookup: Sendable {
    enum Source: Sendable, Equatable {
        /// A list such as `SHA256SUMS` at a URL of its own, in which the file stands by the task's.
        case checksumList(String)
        /// The Metalink at the task's URL.
        case metalink
    }

    enum Answer: Sendable, Equatable {
        case checksum(Checksum)
        /// At least one of its URLs can be asked for, and they stand in the order in which to do so.
        case file(Metalink.File)

        /// What the file has to hash to, `ALGORITHM:HEX`, where that is said.
        var checksum: String? {
            switch self {
            case .checksum(let checksum): checksum.description
            case .file(let file): file.specification.checksum
            }
        }
    }

    enum Limit {
        /// Bytes of a Metalink: those of one file with as many digests of pieces as a task can have are shorter.
        static let metalink = 8 << 20
    }

    let request: DataRequest
    private let source: Source
    private let url: String

    /// - Parameter task: the task's own request: what proves who asks goes along to its own server alone.
    init(of task: TransferRequest, in source: Source, manager: SessionManager) {
        var request: TransferRequest
        switch source {
        case .checksumList(let list):
            request = task.redirected(to: list)
            request.maximumBodySize = Int64(ChecksumList.Limit.bytes)
        case .metalink:
            request = task
            request.maximumBodySize = Int64(Limit.metalink)
        }
        self.request = manager.request(request).validate(statusCode: Array(200..<300))
        self.source = source
        url = task.url
    }

    /// - Parameter finished: is told the answer, or why there is none, on a thread of the engine's.
    func start(_ finished: @escaping @Sendable (Result<Answer, TransferError>) -> Void) {
        // What came is read on a thread that may take its time.
        request.response(queue: .shared) { [source, url] response in
            do throws(TransferError) {
                let body = try response.result.get().map { Array($0) } ?? []
                finished(.success(try Self.answer(source, url, body)))
            } catch {
                finished(.failure(Self.named(error, source)))
            }
        }
        request.resume()
    }

    /// The error with what it is about, without secrets.
    static func named(_ error: TransferError, _ source: Source) -> TransferError {
        var error = error
        switch source {
        case .metalink: error.message = "the Metalink: " + error.message
        case .checksumList(let list):
            error.message = "the list of checksums at \(TaskSpecification.redact(list)): " + error.message
        }
        return error
    }

    /// - Parameter url: the task's.
    static func answer(_ source: Source, _ url: String, _ body: [UInt8]) throws(TransferError) -> Answer {
        switch source {
        case .checksumList: .checksum(try checksum(of: url, in: body))
        case .metalink: .file(try file(of: url, in: body))
        }
    }

    private static func checksum(of url: String, in list: [UInt8]) throws(TransferError) -> Checksum {
        do throws(FileError) {
            return try ChecksumList(parsing: list, file: "the list").checksum(for: FileName.pathFromURL(url))
        } catch {
            throw TransferError(TransferError.Code(rawValue: ErrorCode.checksumMissing.rawValue), "it " + error.message)
        }
    }

    private static func file(of url: String, in metalink: [UInt8]) throws(TransferError) -> Metalink.File {
        let files: [Metalink.File]
        do throws(FileError) {
            files = try Metalink(parsing: metalink, file: "it").files
        } catch {
            throw TransferError(
                TransferError.Code(rawValue: error.code.rawValue),
                "line \(error.line), column \(error.column): \(error.message)")
        }
        let advice = "download it, and use dlctl add --input FILE"
        guard var file = files.first, files.count == 1 else {
            throw TransferError(.invalidRequest, "it describes \(files.count) files, and a task fetches one; \(advice)")
        }
        // A directory of a file server is no file.
        let sources = file.urls.compactMap { try? TaskAddress(parsing: $0) }.filter { !$0.namesDirectory }
        guard !sources.isEmpty else {
            throw TransferError(.invalidRequest, "it names a directory of a file server in the place of a file")
        }
        // As with redirects and `Link: rel=duplicate`, what a server says does not lead from an encrypted protocol to an
        // open one.
        let isEncrypted = (try? TaskAddress(parsing: url))?.isEncrypted ?? true
        file.urls = sources.filter { $0.isEncrypted || !isEncrypted }.map(\.url)
        guard !file.urls.isEmpty else {
            throw TransferError(
                .protocolNotAllowed,
                "it came over an encrypted connection, and names no URL of the file that does as well; \(advice)")
        }
        return file
    }
}

extension TaskSpecification {
    /// The task that the Metalink at its URL describes. What was asked for goes before what the Metalink says; its name
    /// is not among that (``DownloadNaming/described``), and its directories are left out.
    func described(by file: Metalink.File) -> TaskSpecification {
        var task = self
        let found = file.specification
        task.url = found.url
        task.mirrors += found.mirrors
        task.checksum = checksum ?? found.checksum
        task.size = size ?? found.size
        task.pieceHashes = pieceHashes ?? found.pieceHashes
        return task
    }
}
