import Glibc

/// The regular files beneath a directory.
struct FileTree {
    /// The paths relative to the directory, in the order of their names.
    private(set) var files: [String] = []
    /// The symbolic links and special files that were passed over, as relative paths with their kinds.
    private(set) var skipped: [String] = []
    let root: String

    /// Reads a directory and those beneath it. Symbolic links are not followed.
    init(_ root: String) throws(Failure) {
        self.root = root
        try read(beneath: "")
    }

    private mutating func read(beneath relative: String) throws(Failure) {
        let place = relative.isEmpty ? root : "\(root)/\(relative)"
        func refuse(_ code: Int32) -> Failure { .usage("\(place): \(SystemText.error(code))", field: "file") }
        guard let stream = opendir(place) else { throw refuse(errno) }
        var names: [String] = []
        let beginning = relative.isEmpty ? "" : relative + "/"
        errno = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: entry.pointee.d_name)) {
                    (isUTF8: String(validatingCString: $0) != nil, text: String(cString: $0))
                }
            }
            if !name.isUTF8 {
                skipped.append("\(beginning)\(name.text) has a name that is not UTF-8")
            } else if name.text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
                skipped.append("\(beginning)\(name.text) has a control character in its name")
            } else if name.text != ".", name.text != ".." {
                names.append(name.text)
            }
            errno = 0
        }
        let code = errno
        _ = closedir(stream)  // nothing was written
        guard code == 0 else { throw refuse(code) }
        for name in names.sorted() {
            let path = beginning + name
            var information = stat()
            guard lstat("\(root)/\(path)", &information) == 0 else { throw refuse(errno) }
            switch information.st_mode & S_IFMT {
            case S_IFREG: files.append(path)
            case S_IFDIR: try read(beneath: path)
            case S_IFLNK: skipped.append("\(path) is a symbolic link")
            default: skipped.append("\(path) is a special file")
            }
        }
    }
}
