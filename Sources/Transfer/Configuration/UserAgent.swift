import Curl
import Glibc

/// The value of the `User-Agent` field.
enum UserAgent {
    static let library = "dld-transfer/0.1"

    /// Products and a comment (RFC 9110, section 10.1.5).
    static let text = "\(library) \(CurlLibrary.version) (\(system))"

    /// The name and release of the kernel, such as `Linux 6.1.0`. The distribution's suffix is omitted, since it
    /// reveals more about the machine than a server needs.
    private static var system: String {
        var name = utsname()
        guard uname(&name) == 0 else { return "Linux" }
        func text<Field>(_ field: Field) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        let release = text(name.release).utf8.prefix { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
        return "\(text(name.sysname)) \(String(decoding: release, as: UTF8.self))"
    }
}
