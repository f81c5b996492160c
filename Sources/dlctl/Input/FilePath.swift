import Glibc

/// Absolute paths for the daemon, which has its own working directory.
enum FilePath {
    /// - Returns: `nil` with `errno` set if the directory was removed or cannot be read.
    static func currentDirectory() -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard getcwd(&buffer, buffer.count) != nil else { return nil }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Returns `path` made absolute from the current directory. Symbolic links are not resolved.
    ///
    /// - Returns: `nil` with `errno` set if there is no current directory.
    static func absolute(_ path: String) -> String? {
        if path.hasPrefix("/") { return path }
        guard let base = currentDirectory() else { return nil }
        return (base.hasSuffix("/") ? base : base + "/") + path
    }

    /// Returns a directory for downloads as the daemon takes it. A path that begins with a period is beneath the current
    /// directory of this process, and one that begins with a tilde, which the shell has left, beneath the home directory.
    /// Another relative one stays, since it is beneath the daemon's directory for downloads.
    static func directory(_ path: String) throws(Failure) -> String {
        if path == "~" || path.hasPrefix("~/"), let home = Environment.variables["HOME"], home.hasPrefix("/") {
            return home + path.dropFirst()
        }
        guard path.hasPrefix(".") else { return path }
        guard let whole = absolute(path) else {
            let cause = SystemText.error(errno)
            throw .usage("\(path): the current directory cannot be found: \(cause)", field: "--directory")
        }
        if let real = realpath(whole, nil) {
            defer { free(real) }
            return String(cString: real)
        }
        var components: [Substring] = []
        for component in whole.split(separator: "/") where component != "." {
            if component == ".." { _ = components.popLast() } else { components.append(component) }
        }
        return "/" + components.joined(separator: "/")
    }

    /// Returns the path with its directory resolved by realpath(3) and its last component unchanged.
    ///
    /// - Returns: `nil` with `errno` set if the directory does not exist or cannot be resolved.
    static func absoluteFile(_ path: String) -> String? {
        guard let whole = absolute(path), let slash = whole.lastIndex(of: "/") else { return nil }
        let directory = slash == whole.startIndex ? "/" : String(whole[..<slash])
        guard let real = realpath(directory, nil) else { return nil }
        defer { free(real) }
        let base = String(cString: real)
        return (base == "/" ? "" : base) + whole[slash...]
    }
}
