import HTTPTypes

extension TransferRequest: CustomReflectable {
    /// The properties for `dump` and debuggers. Secrets are left out, as in the ``description``: user, password and the
    /// values of the query in URLs, credentials, and the values of header fields that may contain one.
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("url", URLRedaction.redact(url)), ("method", method.rawValue),
            ("headerFields", HTTPHeaders(headerFields)), ("credential", credential as Any),
            ("awaitsChallenge", awaitsChallenge), ("hasLogins", !logins.isEmpty),
            ("identity", identity as Any),
            ("proxy", proxy.map { URLRedaction.redact($0, hidesQuery: false) } as Any),
            ("hasCACertificates", caCertificates != nil), ("trustsAnyServer", trustsAnyServer),
            ("maximumBodySize", maximumBodySize as Any),
            ("emptyResponseCodes", emptyResponseCodes), ("allowsDowngrade", allowsDowngrade),
            ("redirects", redirects), ("keepsBodyWithinOrigin", keepsBodyWithinOrigin), ("segments", segments),
            ("mirrors", mirrors.map { URLRedaction.redact($0) }), ("uploadName", uploadName as Any),
            ("createsRemoteDirectories", createsRemoteDirectories),
            ("ignoresAnswerBody", ignoresAnswerBody), ("maximumRate", maximumRate as Any),
            ("cachePolicy", cachePolicy as Any), ("httpVersion", httpVersion as Any), ("hasCookies", cookies != nil),
            ("transportSecurity", transportSecurity), ("hostKeys", hostKeys as Any), ("timeout", timeout as Any),
            ("connectTimeout", connectTimeout as Any), ("stallTimeout", stallTimeout as Any),
            ("totalTimeout", totalTimeout as Any), ("party", party as Any),
            ("ignoresDeniedNetworks", ignoresDeniedNetworks),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
