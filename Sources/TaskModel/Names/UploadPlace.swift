/// The destination that the URL of an upload denotes: a file or a directory.
public enum UploadPlace: Sendable, Equatable {
    /// The URL names the file itself, or is invalid.
    case file
    /// The URL ends in a slash. Each file is uploaded beneath it under its own name.
    case directory
    /// The path ends in a slash but is followed by a query or a fragment, so that no file name can be appended.
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

    /// Returns the URL of a file beneath a URL that ends in a slash.
    ///
    /// - Parameter path: the local path of the file. Its last component becomes the name.
    public static func url(of path: String, beneath url: String) -> String {
        url + percentEncoded(FileName.last(of: path))
    }

    /// Returns the URL of a file beneath a URL that ends in a slash, with the directories of its relative path.
    public static func url(ofRelative path: String, beneath url: String) -> String {
        url + path.split(separator: "/").map { percentEncoded(String($0)) }.joined(separator: "/")
    }

    /// Percent-encodes every byte except those of unreserved characters (RFC 3986, section 2.3).
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

extension TaskSpecification {
    /// Appends the name of an upload's file to a URL that ends in a slash. A form is sent to the URL as it is.
    package mutating func appendUploadName() {
        guard let file = self.file, !isForm, UploadPlace(url) == .directory else { return }
        url = UploadPlace.url(of: file, beneath: url)
    }
}

extension UInt8 {
    fileprivate var isUnreserved: Bool { isLetterOrDigit || Array("-._~".utf8).contains(self) }
}
