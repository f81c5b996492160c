/// The command-line arguments as raw words, before an argument parser processes them.
public enum CommandWords {
    /// The error for arguments that cannot be read.
    public enum Unreadable: Error, Equatable, CustomStringConvertible {
        /// An argument is not valid UTF-8. Swift would otherwise substitute replacement characters for the invalid
        /// bytes. The program name has number 0, so the first argument has number 1.
        case encoding(number: Int)
        /// The system does not tell the arguments. Swift's runtime reads them from `/proc/self/cmdline`, and would
        /// otherwise behave as if there were none.
        case noProcessInformation

        public var description: String {
            switch self {
            case .encoding(let number): "argument \(number) is not valid UTF-8"
            case .noProcessInformation: "the arguments cannot be read from /proc/self/cmdline; mount /proc"
            }
        }
    }

    /// Returns the arguments of this process without the program name, processed by ``parted(_:)``.
    public static func own() throws(Unreadable) -> [String] {
        // Linux gives every program at least its name.
        guard CommandLine.argc > 0 else { throw .noProcessInformation }
        return parted(try read(CommandLine.unsafeArgv, count: Int(CommandLine.argc)))
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
            guard let word = String(validatingCString: pointer) else { throw .encoding(number: number) }
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
