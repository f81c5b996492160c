import Curl
import Glibc
public import HTTPTypes

extension SessionManager {
    /// The header fields of requests with a ``SessionConfiguration/default`` configuration, unless they have their own:
    /// - `Accept-Encoding`: the codings that this libcurl can decode. The engine sets it for each request, since a
    ///   download has to request unencoded bytes.
    /// - `Accept-Language`: the languages in the environment (`LANGUAGE`, `LC_ALL`, `LC_MESSAGES`, `LANG`), at most
    ///   six, in descending order of preference (RFC 9110, section 12.5.4). Absent if the environment names none.
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
    /// A configuration for users of the library, with ``SessionManager/defaultHTTPHeaders`` on every request. A
    /// configuration made by `init()` has no more than the required fields. Each call returns a new one, so that two
    /// sessions share a storage only on request.
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
