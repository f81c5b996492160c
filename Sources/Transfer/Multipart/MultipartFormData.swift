public import FoundationEssentials
import Glibc

/// A form with files in it, `multipart/form-data` (RFC 7578).
///
/// The `append` methods never fail: the first error is kept and thrown when the form is encoded. A form may be encoded
/// several times. Each time the files are read again through the descriptors opened when they were added, and the
/// streams are created again. Encoding blocks.
public struct MultipartFormData: Sendable {
    /// The form size in bytes, headers and boundaries included, up to which a form is encoded in memory.
    public static let defaultThreshold: Int64 = 10_000_000

    /// The boundary between the parts.
    public let boundary: MultipartBoundary
    /// The length of the encoded body in bytes: headers, boundaries and parts.
    public private(set) var contentLength: Int64
    /// The first error while parts were added, which prevents encoding.
    public private(set) var failure: TransferError?

    private(set) var parts: [MultipartPart] = []

    /// The maximum number of bytes reserved for the body in memory before there are bytes to store.
    private static let reservedAtMost: Int64 = 64 << 20

    /// Creates an empty form, by default with a random boundary.
    public init(boundary: MultipartBoundary = MultipartBoundary()) {
        self.boundary = boundary
        contentLength = Int64(boundary.closing.utf8.count)
    }

    /// The value for the request's `Content-Type`.
    public var contentType: String { "multipart/form-data; \(boundary.parameter)" }

    /// Adds a text value, as of a text field.
    public mutating func append(_ text: String, name: String) {
        append(Array(text.utf8), name: name)
    }

    /// Adds bytes.
    ///
    /// - Parameters:
    ///   - data: the part's body.
    ///   - name: the field's name. Like a file's name it may contain anything but a NUL: quotation marks and line ends
    ///     are percent-encoded.
    ///   - fileName: the file's name, which makes the part a file.
    ///   - mimeType: the media type, in printable ASCII. By default it is guessed from the file's name, and omitted if
    ///     there is none.
    public mutating func append(
        _ data: [UInt8], name: String, fileName: String? = nil, mimeType: String? = nil
    ) {
        attempt { () throws(TransferError) in
            try MultipartPart(
                name: name, fileName: fileName, mimeType: mimeType, length: Int64(data.count), body: .data(data))
        }
    }

    /// Adds a regular file, which is opened immediately and stays open for the life of the form.
    ///
    /// A missing or non-regular file is an error, and so is a file that changes before the form has been encoded
    /// (``TransferError/Code/sourceChanged``).
    ///
    /// - Parameters:
    ///   - path: the file's path.
    ///   - name: the field's name.
    ///   - fileName: the file's name in the form; by default the last component of `path`.
    ///   - mimeType: the media type; by default guessed from the file's name.
    public mutating func append(
        fileAt path: String, name: String, fileName: String? = nil, mimeType: String? = nil
    ) {
        attempt { () throws(TransferError) in
            try Self.part(try UploadSource(path: path), at: path, name: name, fileName: fileName, mimeType: mimeType)
        }
    }

    /// Returns the part of a file.
    ///
    /// - Parameter path: the file's path, whose last component is the default of `fileName`.
    static func part(
        _ source: UploadSource, at path: String, name: String, fileName: String?, mimeType: String?
    ) throws(TransferError) -> MultipartPart {
        let lastName = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) }
        return try MultipartPart(
            name: name, fileName: fileName ?? lastName, mimeType: mimeType, length: source.identity.size,
            body: .file(source))
    }

    /// Adds a file that is open already.
    ///
    /// - Parameters:
    ///   - source: the file. A change to it from now on is an error (``TransferError/Code/sourceChanged``).
    ///   - name: the field's name.
    ///   - fileName: the file's name in the form.
    ///   - mimeType: the media type; by default guessed from the file's name.
    public mutating func append(_ source: UploadSource, name: String, fileName: String, mimeType: String? = nil) {
        attempt { () throws(TransferError) in
            try MultipartPart(
                name: name, fileName: fileName, mimeType: mimeType, length: source.identity.size, body: .file(source))
        }
    }

    /// Adds a stream.
    ///
    /// - Parameters:
    ///   - length: the exact number of bytes of the stream; fewer or more are an error
    ///     (``TransferError/Code/sourceChanged``).
    ///   - name: the field's name.
    ///   - fileName: the file's name, which makes the part a file.
    ///   - mimeType: the media type; by default guessed from the file's name.
    ///   - stream: creates a reader at the beginning of the stream, each time the form is encoded. A ``TransferError``
    ///     of its own or of the reader is thrown unchanged; any other error becomes ``TransferError/Code/io``.
    public mutating func append(
        length: Int64, name: String, fileName: String? = nil, mimeType: String? = nil,
        stream: @escaping @Sendable () throws -> any MultipartReader
    ) {
        attempt { () throws(TransferError) in
            guard length >= 0 else { throw TransferError(.invalidRequest, "a stream's length is negative") }
            return try MultipartPart(
                name: name, fileName: fileName, mimeType: mimeType, length: length, body: .stream(stream))
        }
    }

    mutating func attempt(_ make: () throws(TransferError) -> MultipartPart) {
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

    /// Returns the whole body, encoded in memory.
    public func encode() throws(TransferError) -> [UInt8] {
        var body: [UInt8] = []
        // A declared stream length may be wrong, so the reservation is limited.
        body.reserveCapacity(Int(min(contentLength, Self.reservedAtMost)))
        try forEachPiece { (piece: UnsafeRawBufferPointer) throws(TransferError) in body += piece }
        return body
    }

    /// Writes the body to a new file with permissions for its owner only, part by part and in small pieces.
    ///
    /// The file is not synced: it is a temporary file for sending, of no use after a crash. It is removed on any error.
    ///
    /// - Throws: ``TransferError/Code/nameConflict`` if something of that name exists, even a link;
    ///   ``TransferError/Code/diskFull``; any error of a part.
    public func write(toFileAt path: String) throws(TransferError) { try write(toFileAt: path) { true } }

    func write(toFileAt path: String, while isWanted: () -> Bool) throws(TransferError) {
        if let failure { throw failure }
        guard !path.utf8.contains(0) else {
            throw TransferError(.invalidRequest, "a path contains a NUL byte, where the system would cut it")
        }
        var raw: Int32
        repeat {
            raw = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        } while raw < 0 && errno == EINTR
        guard raw >= 0 else {
            if errno == EEXIST {
                throw TransferError(.nameConflict, "\(path) already exists", systemError: EEXIST)
            }
            throw .file(errno, doing: "create the file \(path)")
        }
        do throws(TransferError) {
            try write(to: FileDescriptorOwner(raw), while: isWanted)
        } catch {
            _ = unlink(path)  // the failure that led here is the one to report
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

extension MultipartFormData {
    /// Adds data.
    ///
    /// - Parameters:
    ///   - data: the part's body.
    ///   - name: the field's name.
    ///   - fileName: the file's name, which makes the part a file.
    ///   - mimeType: the media type; by default guessed from the file's name.
    @_disfavoredOverload
    public mutating func append(_ data: Data, name: String, fileName: String? = nil, mimeType: String? = nil) {
        append(Array(data), name: name, fileName: fileName, mimeType: mimeType)
    }

    /// Adds the regular file at a URL; see ``append(fileAt:name:fileName:mimeType:)``.
    ///
    /// - Parameters:
    ///   - file: a URL of the scheme `file`; any other is an error.
    ///   - name: the field's name.
    ///   - fileName: the file's name in the form; by default the last component of the URL's path.
    ///   - mimeType: the media type; by default guessed from the file's name.
    public mutating func append(_ file: URL, name: String, fileName: String? = nil, mimeType: String? = nil) {
        attempt { () throws(TransferError) in
            try Self.part(
                try UploadSource(file), at: file.path(percentEncoded: false), name: name, fileName: fileName,
                mimeType: mimeType)
        }
    }

    /// Returns the whole body, encoded in memory, as `Data`.
    ///
    /// - Throws: the errors of ``encode()``.
    public func encodedData() throws(TransferError) -> Data { Data(try encode()) }
}

extension MultipartFormData {
    /// Returns the form as a body that reads its one file while it is sent. The file is not copied, and a change to it
    /// before its last byte was read fails the request. The request's `Content-Type` is ``contentType``.
    ///
    /// - Throws: ``failure``; ``TransferError/Code/invalidRequest`` if the form has no file, several files, or a
    ///   stream: send such a form with
    ///   ``SessionManager/upload(multipartFormData:threshold:temporaryDirectory:with:progress:modifier:)``.
    public func framed() throws(TransferError) -> RequestBody {
        if let failure { throw failure }
        var (before, after): ([UInt8], [UInt8]) = ([], [])
        var file: UploadSource?
        func put(_ bytes: some Sequence<UInt8>) { if file == nil { before += bytes } else { after += bytes } }
        for part in parts {
            put((boundary.opening + part.header).utf8)
            switch part.body {
            case .data(let bytes): put(bytes)
            case .file(let source) where file == nil: file = source
            case .file, .stream:
                throw TransferError(.invalidRequest, "a form that is read as it is sent has one file, and no stream")
            }
            put("\r\n".utf8)
        }
        put(boundary.closing.utf8)
        guard let file else {
            throw TransferError(.invalidRequest, "a form that is read as it is sent has a file in it")
        }
        return .framed(FramedFile(before: before, source: file, after: after))
    }
}

extension MultipartFormData: CustomStringConvertible, CustomReflectable {
    /// The number of parts and the size of the encoded form, as in `form-data, 3 parts, 1204 bytes`, and the
    /// ``failure``, if there is one. The contents are left out, since they may be secret.
    public var description: String {
        let size = "\(ReadableText.count(Int64(parts.count), "part")), \(ReadableText.bytes(contentLength))"
        return ReadableText.line("form-data, \(size)\(failure.map { ", invalid: \($0.message)" } ?? "")")
    }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EncodedMultipartFormData: CustomStringConvertible, CustomReflectable {
    /// The place and the size of the body, as in `form-data in memory, 1204 bytes`. The contents are left out, since
    /// they may be secret.
    public var description: String {
        switch self {
        case .inMemory(let body, _): "form-data in memory, \(ReadableText.bytes(body.count))"
        case .onDisk(let path, _, let size):
            ReadableText.line("form-data in the file \(path), \(ReadableText.bytes(size))")
        }
    }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
