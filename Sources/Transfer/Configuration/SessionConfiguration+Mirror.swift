extension SessionConfiguration: CustomReflectable {
    /// The properties for `print`, `dump` and debuggers. Secrets are left out: the values of header fields that may
    /// contain one, user and password of the proxy, and the contents of storages, identities and the cache.
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("additionalHeaders", additionalHeaders.map(FieldRedaction.line)), ("userAgent", userAgent),
            ("httpVersion", httpVersion), ("httpVersions", httpVersions),
            ("maximumCollectedBytes", maximumCollectedBytes),
            ("maximumConnectionsPerHost", maximumConnectionsPerHost as Any), ("connectionLimits", connectionLimits),
            ("downloadRate", downloadRate as Any), ("uploadRate", uploadRate as Any),
            ("downloadLimiter", downloadLimiter as Any), ("uploadLimiter", uploadLimiter as Any),
            ("hostRates", hostRates), ("requestPacer", requestPacer as Any), ("connectTimeout", connectTimeout),
            ("stallTimeout", stallTimeout), ("connectTimeouts", connectTimeouts), ("stallTimeouts", stallTimeouts),
            ("proxy", proxy.map { URLRedaction.redact($0, hidesQuery: false) } as Any),
            ("proxyExceptions", proxyExceptions), ("hasHostProxies", !hostProxies.isEmpty),
            ("deniedNetworks", deniedNetworks), ("caFile", caFile as Any), ("trustPolicies", trustPolicies),
            ("hostTrust", hostTrust),
            ("identities", identities.keys.sorted()), ("hasCookieStorage", cookieStorage != nil),
            ("httpShouldSetCookies", httpShouldSetCookies), ("hasResponseCache", responseCache != nil),
            ("requestCachePolicy", requestCachePolicy), ("maximumRedirects", maximumRedirects),
            ("hostKeys", hostKeys as Any), ("hasTransportStub", transportStub != nil), ("loops", loops),
            ("checkpointInterval", checkpointInterval), ("checkpointLimit", checkpointLimit as Any),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
