/// Rules for one path component: names given by a user are validated, names given by a server are sanitised.
///
/// The code works on bytes and Unicode scalars, not on `Character`. A combining mark merges with a preceding slash or
/// dot into one `Character`, but a file system still sees the slash or dot.
public enum FileName {
    /// The longest file name that Linux file systems accept, in bytes.
    public static let maximumLength = 255

    /// Validates a file name given by a user.
    ///
    /// - Throws: ``FieldError`` for `field`.
    public static func check(_ name: String, field: String = "output") throws(FieldError) {
        let bytes = Array(name.utf8)
        // Whether the name leads to anything but a file in the task's directory.
        let isPath = bytes.contains(UInt8(ascii: "/")) || name == "." || name == ".."
        func refuse(_ message: String) -> FieldError {
            FieldError(field: field, code: isPath ? .pathNotAllowed : .invalid, message: message)
        }
        guard !bytes.isEmpty else { throw refuse("is empty; give a file name or omit the option") }
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw refuse("contains a control character, such as a line break")
        }
        guard !bytes.contains(UInt8(ascii: "/")) else {
            throw refuse("is a path; give a file name here and the directory with --directory")
        }
        guard name != ".", name != ".." else { throw refuse("\(name) names a directory, not a file") }
        guard !bytes.starts(with: ".dld-".utf8) else {
            throw refuse("must not begin with .dld-, which is reserved for part files")
        }
        guard bytes.count <= maximumLength else { throw refuse("is longer than \(maximumLength) bytes") }
    }

    /// The maximum number of levels of a task's directory. Each missing level is created and synced to disk.
    static let maximumDepth = 64

    /// Validates a directory given by a user. The path must not contain `..`.
    ///
    /// - Throws: ``FieldError`` for `field`.
    public static func checkDirectory(_ directory: String, field: String = "directory") throws(FieldError) {
        let bytes = Array(directory.utf8)
        func refuse(_ message: String, code: ErrorCode = .invalid) -> FieldError {
            FieldError(field: field, code: code, message: message)
        }
        guard !bytes.isEmpty else { throw refuse("is empty; give a directory or omit the option") }
        guard bytes.count < 4096 else { throw refuse("is longer than 4095 bytes") }
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw refuse("contains a control character, such as a line break")
        }
        let components = bytes.split(separator: UInt8(ascii: "/"))
        guard components.count <= maximumDepth else { throw refuse("has more than \(maximumDepth) levels") }
        for component in components {
            guard !component.elementsEqual("..".utf8) else {
                throw refuse("must not contain a .. component", code: .pathNotAllowed)
            }
            guard component.count <= maximumLength else {
                throw refuse("a component is longer than \(maximumLength) bytes")
            }
        }
    }

    /// Returns the path of a URL, percent-decoded. Empty where the URL has no path.
    public static func pathFromURL(_ url: String) -> String {
        guard let bytes = pathBytes(of: url) else { return "" }
        return String(decoding: percentDecoded(bytes), as: UTF8.self)
    }

    /// Returns the default name of a download: the last path segment of the URL after ``makeSafe(_:)``, otherwise
    /// `download`. Parameters of the segment that grant access, such as `;jsessionid=…`, are left out, since everyone
    /// who lists the directory can read the name.
    public static func fromURL(_ url: String) -> String {
        if let name = plainSegment(of: url) { return name }
        guard let bytes = pathBytes(of: url), let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else {
            return "download"
        }
        let segment = TaskAddress.withoutSecretParameters(bytes[(slash + 1)...])
        return makeSafe(String(decoding: percentDecoded(segment[...]), as: UTF8.self)) ?? "download"
    }

    /// Returns the last path segment of a URL that needs no decoding. This is the fast path for most URLs.
    ///
    /// - Returns: `nil` where the URL needs the full treatment (percent-encoding, parameters, query, fragment, non-ASCII
    ///   bytes or a segment that is not plain).
    private static func plainSegment(of url: String) -> String? {
        var url = url
        return url.withUTF8 { bytes in
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes.count > colon + 3,
                bytes[colon + 1] == UInt8(ascii: "/"), bytes[colon + 2] == UInt8(ascii: "/"),
                let slash = bytes.lastIndex(of: UInt8(ascii: "/")), slash > colon + 3, slash + 1 < bytes.count
            else { return nil }
            guard !bytes.contains(where: { "%?#;".utf8.contains($0) || $0 > 0x7E }) else { return nil }
            let segment = String(decoding: bytes[(slash + 1)...], as: UTF8.self)
            return isPlain(segment) ? segment : nil
        }
    }

    /// Returns the path bytes, starting at the slash after the authority; `nil` where there is no path.
    private static func pathBytes(of url: String) -> ArraySlice<UInt8>? {
        var bytes = Array(url.utf8)[...]
        if let end = bytes.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) {
            bytes = bytes[..<end]
        }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8),
            let slash = bytes[(colon + 3)...].firstIndex(of: UInt8(ascii: "/"))
        else { return nil }
        return bytes[slash...]
    }

    /// Returns the last component of a path.
    package static func last(of path: String) -> String {
        let bytes = path.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map(bytes.index(after:)) ?? bytes.startIndex
        return String(path[start...])
    }

    /// Returns the directory part of a path, with its trailing slash. Empty where the path has no slash.
    package static func directory(of path: String) -> String {
        let bytes = path.utf8
        let end = bytes.lastIndex(of: UInt8(ascii: "/")).map(bytes.index(after:)) ?? bytes.startIndex
        return String(path[..<end])
    }

    /// Sanitises a file name: returns its last segment without characters that are unsafe for file systems, shells or
    /// readers. Removes hidden scalars, leading dots, spaces, hyphens and tildes, and trailing dots and spaces.
    /// Prefixes names reserved by Windows with `_`. Shortens the name to ``maximumLength``.
    ///
    /// - Returns: `nil` where nothing is left.
    public static func makeSafe(_ name: String) -> String? {
        if isPlain(name) { return name }
        let segment = name.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last
        var scalars = (segment ?? Substring.UnicodeScalarView()).filter { !isHidden($0) }[...]
        while let first = scalars.first, first == "." || first == " " || first == "-" || first == "~" {
            scalars.removeFirst()
        }
        let safe = shorten(withoutTail(scalars))
        guard !safe.isEmpty else { return nil }
        let stem = safe.prefix { $0 != "." }.uppercased()
        return reserved.contains(stem) ? shorten("_" + safe) : safe
    }

    /// Whether `name` is certainly safe as it is. True for most names, which then skip the slow path of
    /// ``makeSafe(_:)``.
    private static func isPlain(_ name: String) -> Bool {
        let bytes = name.utf8
        guard bytes.count <= maximumLength, let first = bytes.first, let last = bytes.last,
            first.isLetterOrDigit || first == UInt8(ascii: "_"), last.isLetterOrDigit,
            bytes.allSatisfy({ (0x20..<0x7F).contains($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") })
        else { return false }
        // Reserved names have a stem of three or four letters.
        let stem = bytes.prefix { $0 != UInt8(ascii: ".") }.count
        return !(3...4).contains(stem)
    }

    /// Returns the text without trailing dots and spaces.
    private static func withoutTail(_ scalars: some BidirectionalCollection<Unicode.Scalar>) -> String {
        var kept = scalars[...]
        while let last = kept.last, last == "." || last == " " { kept.removeLast() }
        var view = String.UnicodeScalarView()
        view.append(contentsOf: kept)
        return String(view)
    }

    /// Returns `NAME (n).ext`, the alternative name with number `number` where `name` is already taken.
    public static func numbered(_ name: String, _ number: Int) -> String {
        let (stem, suffix) = splitSuffix(name)
        let mark = " (\(number))"
        return cut(stem, to: maximumLength - mark.utf8.count - suffix.utf8.count) + mark + suffix
    }

    /// Whether the scalar is invisible or is U+FFFD, the replacement for bytes that are not valid text.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool { scalar.isHidden || scalar.value == 0xFFFD }

    private static let reserved: Set<String> = [
        "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
        "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
    ]

    private static func shorten(_ name: String) -> String {
        guard name.utf8.count > maximumLength else { return name }
        let (stem, suffix) = splitSuffix(name)
        return withoutTail((cut(stem, to: maximumLength - suffix.utf8.count) + suffix).unicodeScalars)
    }

    /// Splits off the file name extension: `archive.tar.gz` → `archive`, `.tar.gz`. An extension longer than 16 bytes
    /// does not count as one.
    private static func splitSuffix(_ name: String) -> (stem: String, suffix: String) {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex,
            name[dot...].utf8.count <= 16
        else { return (name, "") }
        var start = dot
        if name[..<dot].hasSuffix(".tar") { start = name.index(dot, offsetBy: -4) }
        guard start != name.startIndex else { return (name, "") }
        return (String(name[..<start]), String(name[start...]))
    }

    /// Returns the longest prefix of whole characters that fits in `count` bytes. Cuts within the first character, at a
    /// scalar, where even that is too long.
    private static func cut(_ text: String, to count: Int) -> String {
        var kept = text
        while kept.utf8.count > count { kept.removeLast() }
        guard kept.isEmpty else { return kept }
        var length = 0
        let fitting = text.unicodeScalars.prefix { scalar in
            length += UTF8.width(scalar)
            return length <= count
        }
        return String(Substring(fitting))
    }

    static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.endIndex,
                bytes[index + 1].isHexDigit, bytes[index + 2].isHexDigit,
                let value = UInt8(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                decoded.append(value)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }
}
