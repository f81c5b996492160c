import Glibc

/// Kernel information about this process and the machine.
package enum ProcessFile {
    /// - Returns: the text of `/proc/self/NAME`; `nil` if it cannot be read.
    package static func read(_ name: String) -> String? { read(path: "/proc/self/\(name)") }

    /// - Returns: the text of a kernel file; `nil` if it cannot be read.
    static func read(path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        let owner = FileDescriptorOwner(descriptor)
        var text: [UInt8] = []
        var space = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(owner.raw, &space, space.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return String(decoding: text, as: UTF8.self) }
            text += space[..<count]
        }
    }

    /// Returns the process's umask as the kernel reports it in `/proc`; 022 if it does not. The umask(2) call cannot
    /// read it without changing it for all threads.
    static func umask() -> mode_t {
        guard let text = read("status") else { return 0o022 }
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"))
        guard let line = lines.first(where: { $0.starts(with: "Umask:".utf8) }) else { return 0o022 }
        let digits = line.drop { !(0x30...0x37).contains($0) }
        return mode_t(String(decoding: digits, as: UTF8.self), radix: 8) ?? 0o022
    }
}
