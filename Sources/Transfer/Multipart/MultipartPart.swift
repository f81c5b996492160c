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
