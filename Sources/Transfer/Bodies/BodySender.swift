import Curl

/// The sender of a request body. It can send the body several times, each time from the beginning.
///
/// Used on its event loop's thread only.
final class BodySender {
    private let body: RequestBody
    /// Called on any thread when the stream has bytes again.
    var moreToSend: @Sendable () -> Void = {}
    /// A stream that the delegate provided in place of the body's own.
    private var replacement: BodyStream?
    private var pump: BodyPump?
    private var maker: Task<Void, Never>?
    /// The number of bytes sent.
    private(set) var sent: Int64 = 0

    init(_ body: RequestBody) { self.body = body }

    deinit { stop() }

    var length: Int64? { replacement.map { $0.length } ?? body.length }

    var isStream: Bool { if case .stream = body { true } else { false } }

    /// Whether the whole body has been sent.
    var isComplete: Bool { length.map { $0 == sent } ?? isAtEnd }

    private var isAtEnd = false

    /// Prepares the body for sending from its beginning.
    ///
    /// - Parameter stream: a stream to send in place of the body's own.
    func begin(with stream: BodyStream? = nil) throws(TransferError) {
        if let stream { replacement = stream }
        guard rewind(to: 0) else { throw .sourceChanged }
    }

    /// Moves the read position to `offset`. A stream can only be restarted from 0.
    ///
    /// - Returns: whether the body can be sent again from `offset`.
    func rewind(to offset: Int64) -> Bool {
        sent = offset
        isAtEnd = false
        switch body {
        case .none, .data: return true
        case .file(let source): return source.isUnchanged()
        case .framed(let framed): return framed.source.isUnchanged()
        case .stream(let own):
            guard offset == 0 else { return false }
            stop()
            let pump = BodyPump(moreToSend: moreToSend)
            self.pump = pump
            maker = (replacement ?? own).open(pump)
            return true
        }
    }

    /// Whether the body can be read from `offset`.
    func canBegin(at offset: Int64) -> Bool {
        if case .stream = body { offset == 0 } else { true }
    }

    /// Whether the body contains exactly these bytes at `offset`.
    func holds(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        guard let length, offset >= 0, Int64(bytes.count) <= length - offset else { return false }
        switch body {
        // Only uploads to file servers compare bytes, and their body is a file.
        case .none, .stream, .framed: return false
        case .data(let own): return own[Int(offset)..<(Int(offset) + bytes.count)].elementsEqual(bytes)
        case .file(let source):
            return withUnsafeTemporaryAllocation(byteCount: max(1, bytes.count), alignment: 1) { own in
                let count = try? source.descriptor.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: own[..<bytes.count]), at: offset)
                return count == bytes.count && own.prefix(bytes.count).elementsEqual(bytes)
            }
        }
    }

    /// Copies the next bytes of the body into `space`.
    ///
    /// - Throws: if the bytes differ from what was announced; the request must not be completed then.
    /// - Returns: the number of bytes; `nil` if there are none yet.
    func fill(_ space: UnsafeMutableRawBufferPointer) throws(TransferError) -> Int? {
        let count: Int
        switch body {
        case .none: return 0
        case .data(let bytes):
            count = min(space.count, bytes.count - Int(sent))
            bytes.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(rebasing: space[..<count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[Int(sent)..<(Int(sent) + count)]))
            }
        case .file(let source): count = try source.read(into: space, at: sent)
        case .framed(let framed): count = try framed.read(into: space, at: sent)
        case .stream:
            guard let taken = try pull(into: space) else { return nil }
            count = taken
        }
        sent += Int64(count)
        return count
    }

    private func pull(into space: UnsafeMutableRawBufferPointer) throws(TransferError) -> Int? {
        // A read must not end exactly at the announced length: libcurl would ask for no more, and a longer stream would
        // go unnoticed.
        let endsAtLength = space.count > 1 && length == sent + Int64(space.count)
        switch pump?.read(into: endsAtLength ? UnsafeMutableRawBufferPointer(rebasing: space.dropLast()) : space) {
        case .bytes(let count):
            if let length, count == 0 ? sent < length : sent + Int64(count) > length {
                throw TransferError(
                    .bodyStreamFailed, "the body's source did not provide the \(length) bytes it announced")
            }
            isAtEnd = count == 0
            return count
        case .later: return nil
        case .failed(let error): throw error
        case nil: return 0
        }
    }

    func stop() {
        maker?.cancel()
        maker = nil
        pump?.stop()
        pump = nil
    }
}

extension TransferError {
    static let sourceChanged = TransferError(.sourceChanged, "the file changed while it was being sent")
}
