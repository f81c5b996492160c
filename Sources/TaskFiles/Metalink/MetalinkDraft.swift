import TaskModel

/// A file of a Metalink while its element is open.
struct MetalinkDraft {
    let name: MetalinkName
    let position: Position
    /// The byte offset of the element's tag.
    let offset: Int
    var size: Int64?
    /// The `pieces` element that is being read.
    var pieces: Pieces?
    private var checksum: Checksum?
    private var strongestPieces: Pieces?
    private var sources: [(url: String, rank: Int)] = []

    init(name: MetalinkName, position: Position, offset: Int) {
        self.name = name
        self.position = position
        self.offset = offset
    }

    struct Pieces {
        let algorithm: Checksum.Algorithm
        let length: Int64
        /// The byte offset of the element's tag.
        let offset: Int
        private(set) var hashes: [UInt8] = []
        private(set) var count: Int64 = 0

        init(algorithm: Checksum.Algorithm, length: Int64, offset: Int) {
            self.algorithm = algorithm
            self.length = length
            self.offset = offset
        }

        /// Whether there are more digests than a task can have.
        var isTooLong: Bool { count > Int64(PieceHashes.maximumByteCount / algorithm.byteCount) }

        /// Appends the digest of the next piece.
        ///
        /// - Returns: whether `hex` is a digest of ``algorithm``.
        mutating func append(hex: ArraySlice<UInt8>) -> Bool {
            guard hex.count == 2 * algorithm.byteCount, hex.allSatisfy(\.isHexDigit) else { return false }
            count += 1
            guard !isTooLong else { return true }
            for index in stride(from: hex.startIndex, to: hex.endIndex, by: 2) {
                hashes.append(Self.value(hex[index]) << 4 | Self.value(hex[index + 1]))
            }
            return true
        }

        private static func value(_ digit: UInt8) -> UInt8 {
            digit.isDigit ? digit - UInt8(ascii: "0") : (digit | 0x20) - UInt8(ascii: "a") + 10
        }
    }

    mutating func add(_ other: Checksum) {
        if let checksum, checksum.algorithm.strength >= other.algorithm.strength { return }
        checksum = other
    }

    /// The maximum number of URLs that are read of a file, of which a task uses the best.
    private static let mostSources = 1_000

    mutating func add(_ url: String, rank: Int) {
        if sources.count < Self.mostSources { sources.append((url, rank)) }
    }

    mutating func endPieces() {
        guard let ended = pieces else { return }
        pieces = nil
        if ended.count == 0 { return }
        if let strongest = strongestPieces, strongest.algorithm.strength >= ended.algorithm.strength { return }
        strongestPieces = ended
    }

    /// Creates the finished file.
    ///
    /// - Throws: ``FileError`` if the file has no URL, or if its piece digests are inconsistent with its size.
    func file(in source: XMLSource) throws(FileError) -> Metalink.File {
        guard !sources.isEmpty else {
            throw source.fault(
                at: offset,
                "this file has no \"url\" with one of the schemes \(TaskAddress.schemes.joined(separator: ", "))")
        }
        var seen: Set<String> = []
        // URLs of equal rank keep the document's order.
        let urls = sources.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
            .map(\.element.url).filter { seen.insert($0).inserted }
        return Metalink.File(
            directory: name.directory, output: name.output, size: size, checksum: checksum,
            pieceHashes: try pieceHashes(in: source), urls: urls, line: position.line, column: position.column)
    }

    private func pieceHashes(in source: XMLSource) throws(FileError) -> PieceHashes? {
        guard let pieces = strongestPieces else { return nil }
        guard !pieces.isTooLong else {
            // Piece digests only avoid fetching the whole file again after an error; the digest of the whole file
            // verifies it.
            if checksum != nil { return nil }
            throw source.fault(
                at: pieces.offset, code: .tooLarge,
                "these pieces have more digests than a task can have, and there is no \"hash\" of the whole file")
        }
        let hashes = PieceHashes(algorithm: pieces.algorithm, length: pieces.length, hashes: pieces.hashes)
        do {
            try hashes.check(size: size, field: "pieces")
        } catch {
            throw source.fault(at: pieces.offset, "the digests of these pieces \(error.message)")
        }
        return hashes
    }
}
