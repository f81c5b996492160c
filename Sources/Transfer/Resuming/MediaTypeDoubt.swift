/// The check whether a file that came as a web page may be a login or error page in place of the wanted file.
enum MediaTypeDoubt {
    /// The suffixes of archives, images of disks, pictures, packages, media and documents, none of which is a web page.
    private static let suffixes: Set<String> = [
        "7z", "apk", "appimage", "avif", "bin", "bmp", "bz2", "cab", "deb", "dmg", "epub", "exe", "flac", "gif", "gz",
        "heic", "ico", "img", "iso", "jar", "jpeg", "jpg", "lz", "lz4", "lzma", "m4a", "mkv", "mov", "mp3", "mp4",
        "msi",
        "ogg", "pdf", "png", "qcow2", "rar", "raw", "rpm", "squashfs", "tar", "tbz2", "tgz", "tif", "tiff", "txz",
        "tzst",
        "vdi", "vhd", "vmdk", "wasm", "wav", "webm", "webp", "whl", "xz", "z", "zip", "zst",
    ]
    private static let pages: Set<String> = ["text/html", "application/xhtml+xml"]

    /// Returns a warning for a file whose response was a web page.
    ///
    /// - Parameters:
    ///   - mediaType: the type of the response, in lower case and without parameters.
    ///   - names: the file's names.
    ///   - accept: the request's `Accept` field (RFC 9110, section 12.5.1).
    /// - Returns: `nil` if a page may have been wanted.
    static func warning(_ mediaType: String?, names: [String], accept: String?) -> String? {
        guard let mediaType, pages.contains(mediaType) else { return nil }
        if let name = names.first(where: isNoPage) {
            return "the server sent a web page (\(mediaType)) for \(name): it may be a login or error page"
        }
        guard let accept, !accept.isEmpty, !accepts(mediaType, accept.lowercased()) else { return nil }
        return "the server sent a web page (\(mediaType)) though the request accepts \(accept.prefix(80)): it may be a "
            + "login or error page"
    }

    private static func isNoPage(_ name: String) -> Bool {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot != name.utf8.startIndex else { return false }
        return suffixes.contains(name[name.utf8.index(after: dot)...].lowercased())
    }

    private static func accepts(_ mediaType: String, _ accept: String) -> Bool {
        let ranges = accept.split(separator: ",").map { range in
            String(decoding: FieldText.trimmed(range.utf8.prefix { $0 != UInt8(ascii: ";") }), as: UTF8.self)
        }
        let main = mediaType.prefix { $0 != "/" }
        return ranges.contains { $0 == mediaType || $0 == "*/*" || $0 == "\(main)/*" }
    }
}
