import Curl
import HTTPMessages
import HTTPTypes

/// The kind of credential that a request was sent with.
enum SentCredential: Sendable, Equatable {
    /// A bearer token (RFC 6750).
    case token
    /// A user name and password, by the Basic (RFC 7617) or Digest (RFC 7616) scheme.
    case password

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

extension Transaction {
    /// Returns the kind of credential that the server or the proxy rejected with a response; `nil` if none was sent, or
    /// if the response does not concern credentials.
    func sentCredential(for head: ResponseHead) -> SentCredential? {
        switch head.status {
        case 401:
            guard let url else { return nil }
            let authorization = machine.authorization
            if authorization.answers(url) { return authorization.isToken ? .token : .password }
            if let own = request.sentCredential(in: .authorization, session.configuration) { return own }
            // libcurl sends the user and password of the URL if there is no such field.
            let login = try? url.userInformation()
            return login?.user?.isEmpty == false ? .password : nil
        case 407:
            if machine.authorization.answersProxy { return .password }
            let configuration = session.configuration
            if ProxyOptions(configuration: configuration, request: request).hasLogin { return .password }
            return request.sentCredential(in: .proxyAuthorization, configuration)
        default: return nil
        }
    }
}
