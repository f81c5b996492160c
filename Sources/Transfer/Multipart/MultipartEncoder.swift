/// An encoder that produces a form piece by piece. It never holds a whole part in memory, unless the part already was.
struct MultipartEncoder {
    let boundary: MultipartBoundary
    let parts: [MultipartPart]

    /// The number of bytes read from a file or a stream at once.
    private static let pieceSize = 256 * 1024

    /// - Parameter sink: receives the bytes in order; its error ends the encoding.
    func encode(into sink: (UnsafeRawBufferPointer) throws(TransferError) -> Void) throws(TransferError) {
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceSize, alignment: 4096)
        defer { space.deallocate() }
        for part in parts {
            try Self.put(Array((boundary.opening + part.header).utf8), into: sink)
            switch part.body {
            case .data(let bytes): try Self.put(bytes, into: sink)
            case .file(let source): try Self.put(source, of: part, through: space, into: sink)
            case .stream(let make): try Self.put(make, of: part, through: space, into: sink)
            }
            try Self.put(Array("\r\n".utf8), into: sink)
        }
        try Self.put(Array(boundary.closing.utf8), into: sink)
    }

    private static func put(
        _ bytes: [UInt8], into sink: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        try bytes.withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) throws(TransferError) in
            try sink(UnsafeRawBufferPointer(bytes))
        }
    }

    private static func put(
        _ source: UploadSource, of part: MultipartPart, through space: UnsafeMutableRawBufferPointer,
        into sink: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        let changed = TransferError(.sourceChanged, "the file of the part \(part.label) changed since it was added")
        guard source.isUnchanged() else { throw changed }
        var offset: Int64 = 0
        while offset < part.length {
            let wanted = Int(min(Int64(space.count), part.length - offset))
            let piece = UnsafeMutableRawBufferPointer(rebasing: space[..<wanted])
            guard try source.descriptor.read(into: piece, at: offset) == wanted else { throw changed }
            try sink(UnsafeRawBufferPointer(piece))
            offset += Int64(wanted)
        }
        // Bytes read before and after a change do not belong to any one version of the file.
        guard source.isUnchanged() else { throw changed }
    }

    private static func put(
        _ make: @Sendable () throws -> any MultipartReader, of part: MultipartPart,
        through space: UnsafeMutableRawBufferPointer,
        into sink: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        let reader: any MultipartReader
        do {
            reader = try make()
        } catch {
            throw Self.failure(error, of: part)
        }
        var left = part.length
        while true {
            // One byte beyond the end shows whether the stream is longer than declared.
            let wanted = Int(max(1, min(Int64(space.count), left)))
            let piece = UnsafeMutableRawBufferPointer(rebasing: space[..<wanted])
            let count: Int
            do {
                count = try reader.read(into: piece)
            } catch {
                throw Self.failure(error, of: part)
            }
            guard (0...wanted).contains(count) else {
                throw TransferError(.internal, "the stream of the part \(part.label) read more than it had room for")
            }
            guard count > 0 else { break }
            guard count <= left else {
                throw TransferError(.sourceChanged, "the stream of the part \(part.label) is longer than declared")
            }
            try sink(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<count]))
            left -= Int64(count)
        }
        guard left == 0 else {
            throw TransferError(.sourceChanged, "the stream of the part \(part.label) is \(left) bytes too short")
        }
    }

    /// Returns the reader's own error if it is a ``TransferError``. The message of another type may contain anything,
    /// so that only the part is named.
    private static func failure(_ error: any Error, of part: MultipartPart) -> TransferError {
        error as? TransferError ?? TransferError(.io, "the stream of the part \(part.label) failed")
    }
}
