/// Reads a file that an entry names.
///
/// - Parameters:
///   - path: absolute.
///   - limit: bytes; what is longer is refused.
package typealias ReadFile = (_ path: String, _ limit: Int) throws(UnreadableFile) -> [UInt8]

/// Why a file that was named cannot be had.
package struct UnreadableFile: Error, Sendable, Equatable {
    /// With the file's path in it.
    package var reason: String

    package init(_ reason: String) {
        self.reason = reason
    }
}

/// The files that one queue file's entries name: each is read once, however many entries name it.
final class NamedFiles {
    private struct Key: Hashable {
        var path: String
        var limit: Int
    }

    private let read: ReadFile
    private var texts: [Key: Result<String, UnreadableFile>] = [:]

    init(_ read: @escaping ReadFile) {
        self.read = read
    }

    func text(_ path: String, limit: Int) -> Result<String, UnreadableFile> {
        let key = Key(path: path, limit: limit)
        if let text = texts[key] { return text }
        let text: Result<String, UnreadableFile>
        do throws(UnreadableFile) {
            let bytes = try read(path, limit)
            text =
                String(validating: bytes, as: UTF8.self).map { .success($0) }
                ?? .failure(UnreadableFile("\(path) is not UTF-8 text"))
        } catch {
            text = .failure(error)
        }
        texts[key] = text
        return text
    }
}
