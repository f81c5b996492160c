import Curl
package import HTTPTypes

/// The login for a server, sent wherever a redirect, a mirror or a list leads to that server.
package struct ServerLogin: Sendable {
    /// The schemes of the URLs to which it applies.
    package var schemes: Set<String>
    package var credential: Credential?
    package var identity: ClientIdentity?
    package var headerFields: HTTPFields

    package init(
        schemes: Set<String>, credential: Credential? = nil, identity: ClientIdentity? = nil,
        headerFields: HTTPFields = [:]
    ) {
        self.schemes = schemes
        self.credential = credential
        self.identity = identity
        self.headerFields = headerFields
    }
}

extension TransferRequest {
    /// Removes what identifies the client to the previous server, and adds what ``logins`` have for the next one.
    mutating func leaveOrigin(for target: CurlURL?) {
        credential = nil
        identity = nil
        hasLeftOrigin = true
        headerFields = HTTPFields(headerFields.filter { RedirectRule.isHarmless($0.name.canonicalName) })
        guard let target, !logins.isEmpty else { return }
        let known = logins.flatMap { $0.values(forHost: target.host, port: target.port) }
            .filter { $0.schemes.contains(target.scheme) }
        let login = known.first { $0.credential != nil || $0.identity != nil }
        // A login in the URL has precedence.
        let hasOwn = (try? target.userInformation())?.user?.isEmpty == false
        if !hasOwn { (credential, identity) = (login?.credential, login?.identity) }
        for field in known.first(where: { !$0.headerFields.isEmpty })?.headerFields ?? [:]
        where headerFields[field.name] == nil && !(hasOwn && field.name == .authorization) {
            headerFields.append(field)
        }
    }

    /// Returns the request's credential, or the user name and password in its URL.
    func login(at url: CurlURL) -> Credential? {
        if let credential { return credential }
        guard let login = try? url.userInformation(), let user = login.user, !user.isEmpty else { return nil }
        return Credential(user: user, password: login.password ?? "")
    }

    /// Whether a user name and password are not sent before the server asks for them; see ``awaitsChallenge``.
    var withholdsPassword: Bool {
        awaitsChallenge && url.utf8.prefix(5).elementsEqual("http:".utf8) { $0 | 0x20 == $1 | 0x20 }
    }

    /// Whether the request has a user name and password that are not sent before the server asks for them.
    func withholdsLogin(at url: CurlURL) -> Bool {
        withholdsPassword && headerFields[.authorization] == nil && login(at: url)?.kind == .password
    }

    /// Returns the login that is sent before any challenge.
    func unaskedLogin(at url: CurlURL) -> Credential? {
        let login = login(at: url)
        return login?.kind == .password && withholdsPassword ? nil : login
    }
}
