/// A function that reads a file named by an entry.
///
/// - Parameters:
///   - path: the absolute path.
///   - limit: the maximum number of bytes; a longer file is rejected.
package typealias ReadFile = (_ path: String, _ limit: Int) throws(UnreadableFile) -> [UInt8]

/// A ``ReadFile`` that any thread may call.
package typealias SendableReadFile = @Sendable (_ path: String, _ limit: Int) throws(UnreadableFile) -> [UInt8]

/// An error for a named file that cannot be read.
package struct UnreadableFile: Error, Sendable, Equatable {
    /// The reason, including the file's path.
    package var reason: String

    package init(_ reason: String) {
        self.reason = reason
    }
}

/// A cache of the files that the entries of one queue file name: each file is read once, however many entries name it.
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
