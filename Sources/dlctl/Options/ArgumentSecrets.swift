/// The bytes of a command line that are hidden from the process list.
///
/// These are the values of ``options``, the JSON parameters of `dlctl rpc`, and of each argument that contains a URL the
/// user info and what follows the path. The name of a file stays readable, such as that of `--header @FILE`.
enum ArgumentSecrets {
    /// The options whose values are secret, long and short.
    static let options: Set<String> = ["--header", "--form", "--user", "--proxy"]
    /// The options that read lines from `@FILE`.
    private static let optionsOfLines: Set<String> = ["--header", "--form"]

    /// Returns the ranges of bytes to hide of each argument, in ascending order.
    ///
    /// - Parameter arguments: the arguments without the program's name. They need not be valid UTF-8.
    static func ranges(in arguments: [[UInt8]]) -> [[Range<Int>]] {
        let words = arguments.map { String(decoding: $0, as: UTF8.self) }
        let parameters = parametersOfCall(words)
        var option: String?
        return arguments.indices.map { index in
            let bytes = arguments[index]
            let holder = option
            option = options.contains(words[index]) ? words[index] : nil
            if let holder { return value(bytes[...], of: holder) }
            if parameters.contains(index) { return range(bytes.startIndex, bytes.endIndex) }
            if let equals = bytes.firstIndex(of: UInt8(ascii: "=")) {
                let name = String(decoding: bytes[..<equals], as: UTF8.self)
                if options.contains(name) { return value(bytes[(equals + 1)...], of: name) }
            }
            return secretsOfURLs(bytes)
        }
    }

    private static func value(_ bytes: ArraySlice<UInt8>, of option: String) -> [Range<Int>] {
        if bytes.first == UInt8(ascii: "@"), optionsOfLines.contains(option) { return [] }
        return range(bytes.startIndex, bytes.endIndex)
    }

    private static func range(_ start: Int, _ end: Int) -> [Range<Int>] { start < end ? [start..<end] : [] }

    // MARK: Parameters of a call

    /// Returns the indices of what follows the method of `dlctl rpc`.
    private static func parametersOfCall(_ words: [String]) -> Set<Int> {
        guard let command = ArgumentRuns.commandIndex(words), words[command] == "rpc" else { return [] }
        var index = command + 1
        var positions: [Int] = []
        while index < words.count, words[index] != "--" {
            if GlobalOptions.valueOptions.contains(words[index]) {
                index += 2
            } else {
                if !words[index].hasPrefix("-") { positions.append(index) }
                index += 1
            }
        }
        if index + 1 < words.count { positions += (index + 1)..<words.count }
        return Set(positions.dropFirst())
    }

    // MARK: URLs

    /// Returns the ranges of the user info of each URL in a text, and of what follows the first path: its parameters,
    /// the query and the fragment, up to the end of the text.
    private static func secretsOfURLs(_ bytes: [UInt8]) -> [Range<Int>] {
        var hidden: [Range<Int>] = []
        var start = bytes.startIndex
        while let authority = authority(in: bytes, from: start) {
            let text = bytes[authority...]
            // A password may contain a question mark or a number sign by mistake, but no slash.
            let slash = text.firstIndex(of: UInt8(ascii: "/")) ?? text.endIndex
            let host = text[..<slash].lastIndex(of: UInt8(ascii: "@")) ?? authority
            hidden += range(authority, host)
            let path = text[host...]
            let next = self.authority(in: bytes, from: host)
            if let end = path[..<(next ?? path.endIndex)].firstIndex(where: { "?#;".utf8.contains($0) }) {
                return hidden + range(end + 1, bytes.endIndex)
            }
            start = host
        }
        return hidden
    }

    /// Returns the index behind the next `://`.
    private static func authority(in bytes: [UInt8], from start: Int) -> Int? {
        let mark = Array("://".utf8)
        guard bytes.count >= mark.count else { return nil }
        var index = start
        while index <= bytes.count - mark.count {
            if bytes[index..<(index + mark.count)].elementsEqual(mark) { return index + mark.count }
            index += 1
        }
        return nil
    }
}
