import Glibc

/// A form with files in it, `multipart/form-data` (RFC 7578).
///
/// Adding never fails: the first error is kept and comes out when the form is encoded. A form may be encoded any
/// number of times; each time files are read anew through the descriptors that were opened when they were added, and
/// streams are made anew. Encoding blocks.
public struct MultipartFormData: Sendable {
    /// Bytes of a body, headers and boundaries included, up to which it is put together in memory.
    public static let defaultThreshold: Int64 = 10_000_000

    /// Stands between the parts.
    public let boundary: MultipartBoundary
    /// Bytes of the encoded body: headers, boundaries and parts.
    public private(set) var contentLength: Int64
    /// Why the form cannot be encoded: what went wrong first while it was put together.
    public private(set) var failure: TransferError?

    private(set) var parts: [MultipartPart] = []

    /// More than this is not set aside before there are bytes to put there.
    private static let reservedAtMost: Int64 = 64 << 20

    /// An empty form, by default with a random boundary.
    public init(boundary: MultipartBoundary = MultipartBoundary()) {
        self.boundary = boundary
        contentLength = Int64(boundary.closing.utf8.count)
    }

    /// The value for the request's `Content-Type`.
    public var contentType: String { "multipart/form-data; \(boundary.parameter)" }

    /// Adds a plain value, as of a text field.
    public mutating func append(_ text: String, name: String) {
        append(Array(text.utf8), name: name)
    }

    /// Adds bytes.
    ///
    /// - Parameters:
    ///   - data: the part's body, as it is.
    ///   - name: the field's. Like a file's it may hold anything but a NUL: quotation marks and line ends go out
    ///     percent-encoded.
    ///   - fileName: makes the part a file.
    ///   - mimeType: printable ASCII; absent, it is guessed from the file's name, and without one left out.
    public mutating func append(
        _ data: [UInt8], name: String, fileName: String? = nil, mimeType: String? = nil
    ) {
        attempt { () throws(TransferError) in
            try MultipartPart(
                name: name, fileName: fileName, mimeType: mimeType, length: Int64(data.count), body: .data(data))
        }
    }

    /// Adds a regular file, which is opened here and now and stays open as long as the form lives.
    ///
    /// A file that is missing or none is an error, and so is one that is changed before the form has been encoded
    /// (``TransferError/Code/sourceChanged``).
    ///
    /// - Parameters:
    ///   - path: the file's.
    ///   - name: the field's.
    ///   - fileName: absent: the last component of `path`.
    ///   - mimeType: absent: guessed from the file's name.
    public mutating func append(
        fileAt path: String, name: String, fileName: String? = nil, mimeType: String? = nil
    ) {
        attempt { () throws(TransferError) in
            guard !path.utf8.contains(0) else {
                throw TransferError(.invalidRequest, "a path holds a NUL, where the system would cut it")
            }
            let source = try UploadSource(path: path)
            let lastName = path.utf8.split(separator: UInt8(ascii: "/")).last.map {
                String(decoding: $0, as: UTF8.self)
            }
            return try MultipartPart(
                name: name, fileName: fileName ?? lastName, mimeType: mimeType, length: source.identity.size,
                body: .file(source))
        }
    }

    /// Adds a file that is open already.
    ///
    /// - Parameters:
    ///   - source: one that is changed from now on is an error (``TransferError/Code/sourceChanged``).
    ///   - name: the field's.
    ///   - fileName: what the part's file is called.
    ///   - mimeType: absent: guessed from the file's name.
    public mutating func append(_ source: UploadSource, name: String, fileName: String, mimeType: String? = nil) {
        attempt { () throws(TransferError) in
            try MultipartPart(
                name: name, fileName: fileName, mimeType: mimeType, length: source.identity.size, body: .file(source))
        }
    }

    /// Adds a stream.
    ///
    /// - Parameters:
    ///   - length: exactly how many bytes it gives; fewer or more are an error
    ///     (``TransferError/Code/sourceChanged``).
    ///   - name: the field's.
    ///   - fileName: makes the part a file.
    ///   - mimeType: absent: guessed from the file's name.
    ///   - stream: makes a reader that stands at the stream's beginning, each time the form is encoded. An error of
    ///     its own or of the reader's comes out as it is if it is a ``TransferError``, and as
    ///     ``TransferError/Code/io`` otherwise.
    public mutating func append(
        length: Int64, name: String, fileName: String? = nil, mimeType: String? = nil,
        stream: @escaping @Sendable () throws -> any MultipartReader
    ) {
        attempt { () throws(TransferError) in
            guard length >= 0 else { throw TransferError(.invalidRequest, "a stream's length is below zero") }
            return try MultipartPart(
                name: name, fileName: fileName, mimeType: mimeType, length: length, body: .stream(stream))
        }
    }

    private mutating func attempt(_ make: () throws(TransferError) -> MultipartPart) {
        guard failure == nil else { return }
        do throws(TransferError) {
            let part = try make()
            let frame = Int64(boundary.opening.utf8.count + part.header.utf8.count + 2)
            let (size, overflows) = part.length.addingReportingOverflow(frame)
            let (total, overflowsInAll) = contentLength.addingReportingOverflow(size)
            guard !overflows, !overflowsInAll else {
                throw TransferError(.tooLarge, "the form is longer than a file can be")
            }
            contentLength = total
            parts.append(part)
        } catch {
            failure = error
        }
    }

    /// The whole body in memory.
    public func encode() throws(TransferError) -> [UInt8] {
        var body: [UInt8] = []
        // A declared length is only a claim.
        body.reserveCapacity(Int(min(contentLength, Self.reservedAtMost)))
        try forEachPiece { (piece: UnsafeRawBufferPointer) throws(TransferError) in body += piece }
        return body
    }

    /// Writes the body into a new file that only its owner may read, part by part and in small pieces.
    ///
    /// The file is not synced: it is for sending, and worth nothing after a crash. On any error it is removed.
    ///
    /// - Throws: ``TransferError/Code/nameConflict`` where there is something of that name, if only a link;
    ///   ``TransferError/Code/diskFull``; whatever stands in the way of a part.
    public func write(toFileAt path: String) throws(TransferError) { try write(toFileAt: path) { true } }

    func write(toFileAt path: String, while isWanted: () -> Bool) throws(TransferError) {
        if let failure { throw failure }
        guard !path.utf8.contains(0) else {
            throw TransferError(.invalidRequest, "a path holds a NUL, where the system would cut it")
        }
        var raw: Int32
        repeat {
            raw = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        } while raw < 0 && errno == EINTR
        guard raw >= 0 else {
            if errno == EEXIST {
                throw TransferError(.nameConflict, "there is something at \(path) already", systemError: EEXIST)
            }
            throw .file(errno, doing: "make the file \(path)")
        }
        do throws(TransferError) {
            try write(to: FileDescriptorOwner(raw), while: isWanted)
        } catch {
            _ = unlink(path)  // the failure that led here is the one to tell
            throw error
        }
    }

    /// Writes the body to an open file, from its beginning.
    func write(to file: FileDescriptorOwner, while isWanted: () -> Bool = { true }) throws(TransferError) {
        var offset: Int64 = 0
        try forEachPiece { (piece: UnsafeRawBufferPointer) throws(TransferError) in
            guard isWanted() else { throw .cancelled }
            do throws(TransferError) {
                try file.write(piece, at: offset)
            } catch {
                throw .file(error.systemError ?? EIO, doing: "write the form to a file")
            }
            offset += Int64(piece.count)
        }
    }

    private func forEachPiece(
        _ sink: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        if let failure { throw failure }
        try MultipartEncoder(boundary: boundary, parts: parts).encode(into: sink)
    }
}
