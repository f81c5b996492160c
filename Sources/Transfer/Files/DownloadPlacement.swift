import FoundationEssentials
import Glibc

/// The way in which a download obtains its directory and file names.
indirect enum DownloadPlacement: Sendable {
    /// A target known from the start. The caller knows and owns the part file.
    case fixed(DownloadTarget)
    /// A target decided after the response's head is validated. The engine owns the part file.
    case decided(by: DownloadDestination)

    /// Whether the part file has no owner once there are no resume data for it, so that the engine must remove it.
    var ownsPart: Bool {
        switch self {
        case .fixed: false
        case .decided: true
        }
    }
}

extension DownloadDestination {
    /// The facts known when a destination is decided.
    struct Occasion {
        /// The response's head; `nil` if all bytes were already present.
        var head: ResponseHead?
        /// The file name from `Content-Disposition`.
        var suggestedFileName: String?
        /// The name in the URL to which the request was redirected.
        var redirectedFileName: String?
        /// The URL of the original request.
        var url: String
        /// The size of the complete file in bytes.
        var size: Int64?
        /// The closure's decision in an earlier task, from the resume data.
        var earlier: DownloadDecision?
    }

    /// Validates the destination as far as possible before any request is sent.
    func check() throws(TransferError) {
        if let digest { try digest.check() }
        switch rule {
        case .path(let path, let options, let isPrivate):
            _ = try DownloadDecision(path: path, options: options, isPrivate: isPrivate)
        case .impossible(let error): throw error
        case .suggested, .closure, .temporary: break
        }
    }

    func decide(_ occasion: Occasion) throws(TransferError) -> DownloadDecision {
        var decision = try decidePlace(occasion)
        decision.digest = digest ?? decision.digest
        return decision
    }

    private func decidePlace(_ occasion: Occasion) throws(TransferError) -> DownloadDecision {
        switch rule {
        case .path(let path, let options, let isPrivate):
            return try DownloadDecision(path: path, options: options, isPrivate: isPrivate)
        case .suggested(let directory, let options):
            let separator = directory.utf8.last == UInt8(ascii: "/") || directory.isEmpty ? "" : "/"
            return try DownloadDecision(
                path: directory + separator + Self.name(occasion), options: options, isPrivate: false)
        case .temporary:
            return try DownloadDecision(path: Self.temporaryPath(), options: [], isPrivate: true)
        case .impossible(let error): throw error
        case .closure(let decide):
            guard let head = occasion.head else {
                // Without a response head the closure cannot run; its earlier decision stands.
                guard let earlier = occasion.earlier else {
                    throw TransferError(.internal, "a file without a response or a destination")
                }
                return earlier
            }
            let temporary = TemporaryFile(
                path: Self.temporaryPath(), suggestedName: Self.name(occasion), size: occasion.size)
            let said: (path: String, options: Options)
            do {
                said = try decide(temporary, head)
            } catch let error as TransferError {
                throw error
            } catch {
                throw TransferError(
                    .destinationRefused, "the destination was refused: \(error)", underlying: error)
            }
            return try DownloadDecision(
                path: said.path, options: said.options, isPrivate: said.path == temporary.path)
        }
    }

    private static func name(_ occasion: Occasion) -> String {
        occasion.suggestedFileName.flatMap(SafeFileName.make(from:))
            ?? SafeFileName.chosen(
                fromURL: SafeFileName.make(fromURL: occasion.url), redirected: occasion.redirectedFileName)
    }

    private static func temporaryPath() -> String {
        var directory = FileManager.default.temporaryDirectory.path(percentEncoded: false)
        if directory.utf8.last != UInt8(ascii: "/") { directory += "/" }
        return directory + "download-" + DownloadDecision.random(16)
    }
}

extension FileDigest {
    /// Checks that ``hex`` is a digest of ``algorithm``.
    func check() throws(TransferError) {
        let isHex = hex.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        guard isHex, hex.utf8.count == 2 * algorithm.length else {
            throw TransferError(
                .invalidRequest, "a digest by \(algorithm.rawValue) has \(2 * algorithm.length) hexadecimal digits")
        }
    }
}
