/// What the URL of an upload says of the name that the file gets at the server.
public enum UploadPlace: Sendable, Equatable {
    /// The URL names the file itself, or is none.
    case file
    /// The URL ends in a slash: files go beneath it, each under its own name.
    case directory
    /// The path ends in a slash and a query or a fragment follows, which no name can stand behind.
    case directoryWithQuery

    public init(_ url: String) {
        guard (try? TaskAddress(parsing: url)) != nil else {
            self = .file
            return
        }
        let bytes = url.utf8
        let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        guard bytes[..<end].last == UInt8(ascii: "/") else {
            self = .file
            return
        }
        self = end == bytes.endIndex ? .directory : .directoryWithQuery
    }

    /// The URL of a file beneath one that ends in a slash.
    ///
    /// - Parameter path: the file's; its last component is the name.
    public static func url(of path: String, beneath url: String) -> String {
        url + percentEncoded(FileName.last(of: path))
    }

    /// Everything but the unreserved characters (RFC 3986, section 2.3) as `%XX`, byte by byte.
    private static func percentEncoded(_ name: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in name.utf8 {
            if byte.isUnreserved {
                encoded.append(byte)
            } else {
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isUnreserved: Bool { isLetterOrDigit || Array("-._~".utf8).contains(self) }
}
