import FoundationEssentials
import TaskFiles
import TaskModel
import Transfer

/// A request for metadata about a task's file, made before the file is requested.
struct Lookup: Sendable {
    enum Source: Sendable, Equatable {
        /// A list of digests, such as `SHA256SUMS`, at its own URL. The file's entry is found by the name in the task's
        /// URL, by the name that the task gives the file, or by the one that the server gives it.
        case checksumList(String, output: String?)
        /// The Metalink at the task's URL.
        case metalink
    }

    enum Answer: Sendable, Equatable {
        case checksum(Checksum)
        /// A list that contains neither the name in the task's URL nor the one that the task gives the file.
        case list(ChecksumList)
        /// The file described by a Metalink. Its URLs are in order of preference, and at least one of them is usable.
        case file(Metalink.File)

        /// The expected digest, `ALGORITHM:HEX`; `nil` where the response names none.
        var checksum: String? {
            switch self {
            case .checksum(let checksum): checksum.description
            case .list: nil
            case .file(let file): file.specification.checksum
            }
        }
    }

    enum Limit {
        /// The maximum size of a Metalink in bytes. A Metalink of one file with the maximum number of piece digests is
        /// smaller.
        static let metalink = 8 << 20
    }

    let request: DataRequest
    private let source: Source
    private let url: String

    /// Creates the lookup.
    ///
    /// - Parameter task: the task's own request. Its credentials are sent only to the task's own server.
    init(of task: TransferRequest, in source: Source, manager: SessionManager) {
        var request: TransferRequest
        switch source {
        case .checksumList(let list, _):
            request = task.redirected(to: list)
            request.maximumBodySize = Int64(ChecksumList.Limit.bytes)
        case .metalink:
            request = task
            request.maximumBodySize = Int64(Limit.metalink)
        }
        // A response with 202 has no list yet.
        self.request = manager.request(request).validate(statusCode: (200..<300).filter { $0 != 202 })
        self.source = source
        url = task.url
    }

    /// Starts the request.
    ///
    /// - Parameter finished: receives the result or the error, on a thread of the engine.
    func start(_ finished: @escaping @Sendable (Result<Answer, TransferError>) -> Void) {
        // The body is parsed on a queue where slow work is allowed.
        request.response(queue: .shared) { [source, url] response in
            do throws(TransferError) {
                let body = try response.result.get().map { Array($0) } ?? []
                let base = response.metrics.last?.url ?? url
                finished(.success(try Self.answer(source, url, body, base: base)))
            } catch {
                finished(.failure(Self.named(error, source)))
            }
        }
        request.resume()
    }

    /// Returns the error with a message that names the source, without secrets.
    static func named(_ error: TransferError, _ source: Source) -> TransferError {
        var error = error
        switch source {
        case .metalink: error.message = "the Metalink: " + error.message
        case .checksumList(let list, _):
            error.message = "the list of checksums at \(TaskSpecification.redact(list)): " + error.message
        }
        return error
    }

    /// Parses the response body.
    ///
    /// - Parameters:
    ///   - url: the task's URL.
    ///   - base: the URL from which the body came, to which relative URLs in it refer; `nil` for the task's URL.
    static func answer(
        _ source: Source, _ url: String, _ body: [UInt8], base: String? = nil
    ) throws(TransferError) -> Answer {
        switch source {
        case .checksumList(_, let output): try checksum(of: url, output: output, in: body)
        case .metalink: .file(try file(of: url, in: body, base: base ?? url))
        }
    }

    private static func checksum(
        of url: String, output: String?, in text: [UInt8]
    ) throws(TransferError) -> Answer {
        do throws(FileError) {
            let list = try ChecksumList(parsing: text, file: "the list")
            if let checksum = try list.find(FileName.pathFromURL(url)) { return .checksum(checksum) }
            if let output, let checksum = try list.find(output) { return .checksum(checksum) }
            return .list(list)
        } catch {
            throw missing(error)
        }
    }

    private static func missing(_ error: FileError) -> TransferError {
        TransferError(TransferError.Code(rawValue: ErrorCode.checksumMissing.rawValue), "it " + error.message)
    }

    /// Returns the digest of a file whose name was not known when the list was read.
    ///
    /// - Parameters:
    ///   - names: the names of the file, the most specific first.
    ///   - url: the URL of the list.
    static func checksum(
        of names: [String], in list: ChecksumList, at url: String
    ) throws(TransferError) -> Checksum {
        do throws(FileError) {
            for name in names { if let checksum = try list.find(name) { return checksum } }
            return try list.checksum(for: names.first ?? "")
        } catch {
            throw named(missing(error), .checksumList(url, output: nil))
        }
    }

    private static func file(
        of url: String, in metalink: [UInt8], base: String
    ) throws(TransferError) -> Metalink.File {
        let files: [Metalink.File]
        do throws(FileError) {
            files = try Metalink(
                parsing: metalink, file: "it", resolve: { TransferRequest.resolve($0, against: base) }
            ).files
        } catch {
            throw TransferError(
                TransferError.Code(rawValue: error.code.rawValue),
                "line \(error.line), column \(error.column): \(error.message)")
        }
        let advice = "download it, and use dlctl add --input FILE"
        guard var file = files.first, files.count == 1 else {
            throw TransferError(.invalidRequest, "it describes \(files.count) files, and a task fetches one; \(advice)")
        }
        // A directory on a file server is not a file.
        let sources = file.urls.compactMap { try? TaskAddress(parsing: $0) }.filter { !$0.namesDirectory }
        guard !sources.isEmpty else {
            throw TransferError(.invalidRequest, "it names a directory of a file server, not a file")
        }
        // A response must not lead from an encrypted protocol to an unencrypted one. The same rule applies to redirects
        // and to `Link: rel=duplicate`.
        let isEncrypted = (try? TaskAddress(parsing: url))?.isEncrypted ?? true
        file.urls = sources.filter { $0.isEncrypted || !isEncrypted }.map(\.url)
        guard !file.urls.isEmpty else {
            throw TransferError(
                .protocolNotAllowed,
                "it came over an encrypted connection, but names no URL of the file with encryption; \(advice)")
        }
        return file
    }
}

extension TaskSpecification {
    /// Returns the task as described by the Metalink at its URL. The task's own options take precedence. The Metalink's
    /// file name is not applied here (see ``DownloadNaming/described``), and its directories are ignored.
    func described(by file: Metalink.File) -> TaskSpecification {
        var task = self
        let found = file.specification
        task.url = found.url
        task.mirrors += found.mirrors
        task.checksum = self.checksum ?? found.checksum
        task.size = self.size ?? found.size
        task.pieceHashes = self.pieceHashes ?? found.pieceHashes
        return task
    }
}
