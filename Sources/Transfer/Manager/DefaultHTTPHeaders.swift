import Curl
import Glibc
import HTTPTypes

extension SessionManager {
    /// What the requests of a ``SessionConfiguration/default`` configuration carry, unless they have their own:
    /// - `Accept-Encoding`: what this libcurl can decode. Set by the engine for each request, since a download has to ask
    ///   for the bytes as they are.
    /// - `Accept-Language`: as the environment names languages (`LANGUAGE`, `LC_ALL`, `LC_MESSAGES`, `LANG`), at most
    ///   six, each less wanted than the one before (RFC 9110, section 12.5.4); left out where it names none.
    /// - `User-Agent`: this library, libcurl and the system.
    public static let defaultHTTPHeaders: HTTPFields = {
        var fields = HTTPFields()
        let codings = CurlLibrary.contentCodings
        if !codings.isEmpty { fields[.acceptEncoding] = codings.joined(separator: ", ") }
        let languages = AcceptLanguage.tags { name in getenv(name).map { String(cString: $0) } }
        if !languages.isEmpty { fields[.acceptLanguage] = AcceptLanguage.fieldValue(languages) }
        fields[.userAgent] = UserAgent.text
        return fields
    }()
}

extension SessionConfiguration {
    /// For users of the library: ``SessionManager/defaultHTTPHeaders`` on every request. One that is made by `init()`
    /// says no more than it has to. A new one each time, so that no two sessions share a storage unless somebody wants
    /// them to.
    public static var `default`: SessionConfiguration {
        var configuration = SessionConfiguration()
        for field in SessionManager.defaultHTTPHeaders {
            switch field.name {
            case .userAgent: configuration.userAgent = field.value
            case .acceptEncoding: break
            default: configuration.additionalHeaders.append("\(field.name): \(field.value)")
            }
        }
        return configuration
    }
}

/// Who is at work.
enum UserAgent {
    static let library = "dld-transfer/0.1"

    /// As products and a comment (RFC 9110, section 10.1.5).
    static let text = "\(library) \(CurlLibrary.version) (\(system))"

    /// `Linux 6.1.0`: without what the distribution adds, which tells more of the machine than a server needs.
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
