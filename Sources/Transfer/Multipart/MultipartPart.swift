/// A part of a form: its encoded header and the source of its body.
struct MultipartPart: Sendable {
    enum Body: Sendable {
        case data([UInt8])
        case file(UploadSource)
        case stream(@Sendable () throws -> any MultipartReader)
    }

    /// The part's name for messages: quoted, in one line.
    let label: String
    /// The header lines, with the empty line that ends them.
    let header: String
    let body: Body
    /// The length of the body in bytes.
    let length: Int64

    /// - Throws: ``TransferError/Code/invalidRequest`` if a value is not allowed in a header.
    init(
        name: String, fileName: String?, mimeType: String?, length: Int64, body: Body
    ) throws(TransferError) {
        label = name.debugDescription
        self.body = body
        self.length = length
        var header = "Content-Disposition: form-data; name=\"\(try Self.escaped(name))\""
        if let fileName { header += "; filename=\"\(try Self.escaped(fileName))\"" }
        header += "\r\n"
        if let type = mimeType ?? fileName.map(FileMediaType.guess) {
            guard !type.isEmpty, type.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                throw TransferError(
                    .invalidRequest, "a part's media type contains characters that a header line must not contain")
            }
            header += "Content-Type: \(type)\r\n"
        }
        self.header = header + "\r\n"
    }

    /// Percent-encodes the characters that would end the quotation or the line, and leaves the rest as UTF-8, as
    /// browsers do (HTML standard, "multipart/form-data encoding algorithm"; RFC 7578, sections 2 and 5.1).
    private static func escaped(_ text: String) throws(TransferError) -> String {
        var bytes: [UInt8] = []
        // The loop runs over bytes, since CR LF is a single `Character`.
        for byte in text.utf8 {
            switch byte {
            case 0: throw TransferError(.invalidRequest, "a part's name or file name contains a NUL byte")
            case UInt8(ascii: "\""): bytes += "%22".utf8
            case 0x0D: bytes += "%0D".utf8
            case 0x0A: bytes += "%0A".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A reader of a part's bytes, in order. It is used by one thread at a time, which it may block.
public protocol MultipartReader: Sendable {
    /// Writes the next bytes to the start of `space`, which is never empty.
    ///
    /// - Returns: the number of bytes written, at most the size of `space`; 0 at the end.
    func read(into space: UnsafeMutableRawBufferPointer) throws -> Int
}

/// Media types of files by the last extension of their names, for the types that servers of forms commonly evaluate.
enum FileMediaType {
    /// The media type of a file with an unknown extension (RFC 7578, section 4.4).
    static let unknown = "application/octet-stream"

    private static let types = [
        "7z": "application/x-7z-compressed", "avif": "image/avif", "bmp": "image/bmp", "bz2": "application/x-bzip2",
        "css": "text/css", "csv": "text/csv", "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif",
        "gz": "application/gzip", "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon",
        "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json",
        "m4a": "audio/mp4", "md": "text/markdown", "mkv": "video/matroska", "mov": "video/quicktime",
        "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "oga": "audio/ogg", "ogg": "audio/ogg",
        "ogv": "video/ogg", "opus": "audio/ogg", "pdf": "application/pdf", "png": "image/png",
        "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/wav",
        "webm": "video/webm", "webp": "image/webp", "xml": "application/xml", "xz": "application/x-xz",
        "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip", "zst": "application/zstd",
    ]

    /// - Parameter fileName: a name without directories. A name whose only dot is its first character has no extension.
    static func guess(fileName: String) -> String {
        let bytes = fileName.utf8
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot != bytes.startIndex else { return unknown }
        let fileExtension = String(decoding: bytes[bytes.index(after: dot)...], as: UTF8.self).lowercased()
        return types[fileExtension] ?? unknown
    }
}
