import Glibc
import TaskFiles

/// The queue files that match the configuration's patterns.
enum QueueFiles {
    /// The most files of one reading.
    static let limit = 10_000

    /// - Parameter patterns: patterns as of glob(7). One without wildcards names a file, whether or not that exists.
    /// - Returns: the paths in the order of the patterns, those of one pattern sorted by name, each once.
    static func matching(_ patterns: [QueuePattern]) -> [QueuePattern] {
        var seen: Set<String> = []
        var files: [QueuePattern] = []
        for pattern in patterns {
            for path in expand(pattern.path) where files.count < limit && seen.insert(path).inserted {
                files.append(QueuePattern(path: path, prune: pattern.prune))
            }
        }
        return files
    }

    private static func expand(_ pattern: String) -> [String] {
        guard pattern.utf8.contains(where: { Array("*?[".utf8).contains($0) }) else { return [pattern] }
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, 0, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }
}
