import CLinux
import Glibc
package import HTTPTypes

/// The version of a finished file, as its server stated it, and the file's size. A later request compares them (RFC
/// 9110, section 13). It is a class, so that it takes little room in the transfers without one.
package final class FileVersion: Sendable {
    /// The size in bytes, if known.
    private let size: Int64?
    /// The ``ResumeData/resource(of:)`` of the requested URL. A validator has no meaning for another one.
    private let resource: String
    /// Whether the version stands on the file. Otherwise only the file's time and size are known, and not of which URL it
    /// is.
    let isRecorded: Bool
    /// The `ETag`, if it can be sent back unchanged.
    let entityTag: String?
    /// The `Last-Modified` date in seconds since 1970.
    let lastModified: Int64?

    private static let longestTag = 256

    init(size: Int64?, url: String, _ validator: ResourceValidator, isRecorded: Bool = true) {
        self.size = size
        self.isRecorded = isRecorded
        resource = ResumeData.resource(of: url)
        lastModified = validator.lastModified.flatMap(HTTPDate.parse)
        entityTag = validator.entityTag.flatMap { tag in
            let isPlain = tag.utf8.count <= Self.longestTag && tag.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            return isPlain && tag.utf8.last == UInt8(ascii: "\"") ? tag : nil
        }
    }

    /// The request field that makes a server send the file only if it has another version; `nil` where the version has
    /// no validator. A file without a record is compared with the response instead: its time alone says too little.
    package var condition: HTTPField? {
        guard isRecorded else { return nil }
        if let entityTag { return HTTPField(name: .ifNoneMatch, value: entityTag) }
        return lastModified.map { HTTPField(name: .ifModifiedSince, value: HTTPDate.text($0)) }
    }

    /// Whether a response is of this version: by the ETag, otherwise by date and size.
    ///
    /// - Parameter total: the size of the whole file in bytes, if the response states it.
    func isShown(by validator: ResourceValidator, total: Int64?) -> Bool {
        // The comparison is the weak one (RFC 9110, section 8.8.3.2), as for `If-None-Match`.
        let opaque = { (tag: String) in tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }
        if let entityTag, let theirs = validator.entityTag { return opaque(entityTag) == opaque(theirs) }
        guard let lastModified, let total, total == size else { return false }
        return lastModified == validator.lastModified.flatMap(HTTPDate.parse)
    }

    // MARK: The record on the file

    /// The text that records the version on a file with this status.
    private func record(_ status: stat) -> String {
        "\(Self.state(status)) \(resource) \(lastModified.map(String.init) ?? "-") \(entityTag ?? "-")"
    }

    private static func state(_ status: stat) -> String {
        "\(status.st_size) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec)"
    }

    /// Records the version on its file, whose content and modification time are final. On a file system without extended
    /// attributes there is no record.
    func record(on file: FileDescriptorOwner) {
        guard let status = try? file.status() else { return }
        PartFile.setVersion(record(status), of: file.raw)
    }

    /// Creates the version of a file from its record, or from its time if there is no record.
    ///
    /// - Returns: `nil` where the file was changed since the record, or is of another URL.
    fileprivate convenience init?(of file: FileDescriptorOwner, _ status: stat, url: String) {
        var isRecorded = false
        var validator = ResourceValidator(lastModified: HTTPDate.text(Int64(status.st_mtim.tv_sec)))
        if let recorded = PartFile.version(of: file.raw) {
            let words = recorded.split(separator: " ", maxSplits: 5)
            guard words.count == 6, words[0..<3].joined(separator: " ") == FileVersion.state(status),
                words[3] == ResumeData.resource(of: url)
            else { return nil }
            isRecorded = true
            validator.entityTag = String(words[5])
            validator.lastModified = Int64(words[4]).map(HTTPDate.text)
        }
        self.init(size: Int64(status.st_size), url: url, validator, isRecorded: isRecorded)
    }
}

extension Directory {
    /// Returns the version of the finished file `name`.
    ///
    /// - Parameter url: the URL to request the file from.
    /// - Returns: `nil` if there is no such file, if it was changed after its download, or if it came from another URL.
    package func version(of name: String, from url: String) -> FileVersion? {
        guard let (file, status) = open(reading: name), status.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileVersion(of: file, status, url: url)
    }

    /// Records the version of the finished file `name`.
    func record(_ version: FileVersion, of name: String) {
        if let (file, _) = open(reading: name) { version.record(on: file) }
    }
}
