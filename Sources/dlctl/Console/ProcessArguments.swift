import Glibc

/// The arguments in the memory of this process, which every user can read in `/proc/PID/cmdline`.
enum ProcessArguments {
    /// Overwrites the secrets of the command line with asterisks. The lengths of the arguments stay.
    ///
    /// Copy the arguments before, where they are needed.
    static func hideSecrets() {
        let pointers = arguments()
        let secrets = ArgumentSecrets.ranges(in: pointers.map { Array(UnsafeRawBufferPointer($0)) })
        for (pointer, ranges) in zip(pointers, secrets) {
            for index in ranges.joined() where pointer.indices.contains(index) {
                pointer[index] = CChar(bitPattern: UInt8(ascii: "*"))
            }
        }
    }

    /// Returns the arguments without the program's name, each without its final NUL.
    private static func arguments() -> [UnsafeMutableBufferPointer<CChar>] {
        var arguments: [UnsafeMutableBufferPointer<CChar>] = []
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let start = CommandLine.unsafeArgv[index] else { break }
            arguments.append(UnsafeMutableBufferPointer(start: start, count: strlen(start)))
        }
        return arguments
    }
}
