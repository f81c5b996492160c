import Glibc
import TestSupport

/// Bytes of a body or of a part file: a range of a resource, or the bytes themselves.
enum ModelContent {
    case resource(Resource, Range<Int64>)
    case bytes([UInt8])

    private static let pieceSize: Int64 = 64 << 10

    var count: Int64 {
        switch self {
        case .resource(_, let range): Int64(range.count)
        case .bytes(let bytes): Int64(bytes.count)
        }
    }

    /// Returns the bytes from `start` to `end`, counted from the first one.
    func part(_ start: Int64, _ end: Int64) -> ModelContent {
        switch self {
        case .resource(let resource, let range):
            .resource(resource, range.lowerBound + start..<range.lowerBound + end)
        case .bytes(let bytes): .bytes(Array(bytes[Int(start)..<Int(end)]))
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .resource(let resource, let range): resource.bytes(range)
        case .bytes(let bytes): bytes
        }
    }

    /// Whether the bytes are those of `other`, which has as many.
    func isSame(as other: ModelContent) -> Bool {
        if case .resource(let mine, let range) = self, case .resource(let theirs, let others) = other,
            range == others, mine.hasSameBytes(as: theirs)
        {
            return true
        }
        var offset: Int64 = 0
        while offset < count {
            let end = min(offset + Self.pieceSize, count)
            if part(offset, end).bytes != other.part(offset, end).bytes { return false }
            offset = end
        }
        return true
    }

    /// Returns the content with the bytes of `next` behind it; `nil` if both are no single range of a resource.
    func joined(with next: ModelContent) -> ModelContent? {
        guard case .resource(let resource, let range) = self, case .resource(let other, let following) = next,
            range.upperBound == following.lowerBound, resource.hasSameBytes(as: other)
        else { return nil }
        return .resource(resource, range.lowerBound..<following.upperBound)
    }
}

extension Resource {
    /// Whether every byte within both sizes is known to be the same.
    fileprivate func hasSameBytes(as other: Resource) -> Bool {
        seed == other.seed && zeros == other.zeros && wrongByte == other.wrongByte
    }
}

/// The bytes of a part file, by their offsets.
struct ModelFile {
    private struct Piece {
        var start: Int64
        var content: ModelContent

        var end: Int64 { start + content.count }
    }

    /// The pieces in the order of their offsets; none overlaps another.
    private var pieces: [Piece] = []

    mutating func write(_ content: ModelContent, at start: Int64) {
        guard content.count > 0 else { return }
        let end = start + content.count
        remove(start..<end)
        let index = pieces.firstIndex { $0.start >= end } ?? pieces.count
        if index > 0, pieces[index - 1].end == start, let joined = pieces[index - 1].content.joined(with: content) {
            pieces[index - 1].content = joined
        } else {
            pieces.insert(Piece(start: start, content: content), at: index)
        }
    }

    mutating func remove(_ range: Range<Int64>) {
        pieces = pieces.flatMap { piece -> [Piece] in
            guard piece.start < range.upperBound, piece.end > range.lowerBound else { return [piece] }
            var left: [Piece] = []
            if piece.start < range.lowerBound {
                left.append(
                    Piece(start: piece.start, content: piece.content.part(0, range.lowerBound - piece.start)))
            }
            if piece.end > range.upperBound {
                let content = piece.content.part(range.upperBound - piece.start, piece.content.count)
                left.append(Piece(start: range.upperBound, content: content))
            }
            return left
        }
    }

    /// Returns the contents within `range`, in order; `nil` if bytes are missing.
    private func contents(of range: Range<Int64>) -> [ModelContent]? {
        var (found, position): ([ModelContent], Int64) = ([], range.lowerBound)
        for piece in pieces where piece.end > position && piece.start < range.upperBound {
            guard piece.start <= position else { return nil }
            let end = min(piece.end, range.upperBound)
            found.append(piece.content.part(position - piece.start, end - piece.start))
            position = end
        }
        return position == range.upperBound ? found : nil
    }

    func bytes(_ range: Range<Int64>) -> [UInt8]? {
        contents(of: range)?.reduce(into: []) { $0 += $1.bytes }
    }

    /// Whether the file holds the bytes of `content` at `start`.
    func holds(_ content: ModelContent, at start: Int64) -> Bool {
        guard let contents = contents(of: start..<start + content.count) else { return false }
        var offset: Int64 = 0
        for piece in contents {
            if !piece.isSame(as: content.part(offset, offset + piece.count)) { return false }
            offset += piece.count
        }
        return true
    }

    /// Whether the first `size` bytes of the file are the resource.
    func isWhole(_ resource: Resource, size: Int64) -> Bool {
        size == resource.size && holds(.resource(resource, 0..<size), at: 0)
    }
}
