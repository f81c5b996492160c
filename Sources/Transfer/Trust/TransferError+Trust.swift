extension TransferError {
    /// The maximum number of public keys in a message.
    private static let maximumKeys = 4

    /// Returns the error for a server whose certificates are unknown.
    static func untrusted(_ host: String) -> TransferError {
        TransferError(.tls, "the certificate of \(host) was refused")
    }

    /// Returns the error for a server whose certificates were refused. Its message has the pins of their keys, so that
    /// a reader sees which ones could be pinned.
    static func untrusted(_ trust: ServerTrust) -> TransferError {
        var error = untrusted(trust.host)
        guard trust.isPinnedByHost else { return error.naming(keysOf: trust) }
        error.message += ", because none of its keys is pinned"
        error = error.naming(keysOf: trust)
        error.message += "; if the key was changed on purpose, pin one of them"
        return error
    }

    /// Returns the error with the first of the server's public keys in its message, in the form of a ``PublicKeyPin``.
    func naming(keysOf trust: ServerTrust) -> TransferError {
        let pins = trust.publicKeyPins(upTo: Self.maximumKeys)
        guard !pins.isEmpty else { return self }
        var error = self
        let rest = trust.certificateCount - pins.count
        error.message += "; the server's public keys are " + pins.map(\.description).joined(separator: ", ")
        if rest > 0 { error.message += " and \(rest) more" }
        return error
    }
}

extension ServerTrust {
    /// The number of certificates whose keys are compared with pins, or that the server presented.
    fileprivate var certificateCount: Int { chain.isEmpty ? certificates.count : chain.count }

    /// Returns the pins of the first certificates.
    fileprivate func publicKeyPins(upTo limit: Int) -> [PublicKeyPin] {
        chain.isEmpty
            ? certificates.prefix(limit).compactMap { PublicKeyPin(certificate: $0) }
            : chain.prefix(limit).compactMap { PublicKeyPin(der: $0) }
    }
}
