/// The command-line arguments as raw words, before an argument parser processes them.
public enum CommandWords {
    /// The error for an argument that is not valid UTF-8. Swift would otherwise substitute replacement characters for
    /// the invalid bytes.
    public struct Unreadable: Error, Equatable, CustomStringConvertible {
        /// The argument's index. The program name has index 0, so the first argument has index 1.
        public let number: Int

        public var description: String { "argument \(number) is not valid UTF-8" }
    }

    /// Returns the arguments of this process without the program name, processed by ``parted(_:)``.
    public static func own() throws(Unreadable) -> [String] {
        parted(try read(CommandLine.unsafeArgv, count: Int(CommandLine.argc)))
    }

    /// Reads the arguments without the program name.
    ///
    /// - Parameter count: the number of pointers, including the one to the program name.
    private static func read(
        _ pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, count: Int
    ) throws(Unreadable) -> [String] {
        var words: [String] = []
        for number in 1..<max(1, count) {
            guard let pointer = pointers[number] else { break }
            guard let word = String(validatingCString: pointer) else { throw Unreadable(number: number) }
            words.append(word)
        }
        return words
    }

    /// Splits `--name=` into the name and an empty value. The argument parser would otherwise take the next word as the
    /// value. Words after a bare `--` stay unchanged.
    public static func parted(_ words: [String]) -> [String] {
        let options = words.prefix { $0 != "--" }
        return options.flatMap { lacksValue($0) ? [String($0.dropLast()), ""] : [$0] } + words[options.endIndex...]
    }

    /// Whether the word is an option whose first equals sign is its last byte.
    private static func lacksValue(_ word: String) -> Bool {
        let bytes = word.utf8
        guard bytes.first == UInt8(ascii: "-"), let equals = bytes.firstIndex(of: UInt8(ascii: "="))
        else { return false }
        return bytes.index(after: equals) == bytes.endIndex && bytes[..<equals].contains { $0 != UInt8(ascii: "-") }
    }
}
