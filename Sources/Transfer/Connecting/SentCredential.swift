import Curl
import HTTPMessages
import HTTPTypes

/// The kind of credential that a refused request was sent with, or the proxy that refused it.
enum SentCredential: Sendable, Equatable {
    /// A bearer token (RFC 6750).
    case token
    /// A user name and password, by the Basic (RFC 7617) or Digest (RFC 7616) scheme.
    case password
    /// The proxy that refused the request, whatever it was sent with.
    case proxy(ProxyRefusal)

    /// Reads the scheme of an `Authorization` or `Proxy-Authorization` field.
    ///
    /// - Returns: `nil` without a field, and for another scheme.
    init?(field value: String?) {
        switch value?.prefix(while: { $0 != " " }).lowercased() {
        case "bearer": self = .token
        case "basic", "digest": self = .password
        default: return nil
        }
    }
}

extension TransferRequest {
    /// Returns the kind of credential that the request is sent with before any challenge: its own, or one among the
    /// session's header fields.
    ///
    /// - Parameter name: the field that contains the credential.
    func sentCredential(in name: HTTPField.Name, _ configuration: SessionConfiguration) -> SentCredential? {
        let lines = SentFields.lines(of: self, configuration, engineFields: [], isAuthorized: false)
        return SentCredential(field: SentFields.fields(lines)[name])
    }
}
