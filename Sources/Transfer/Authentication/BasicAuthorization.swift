import FoundationEssentials

/// The Basic authentication scheme (RFC 7617).
public enum BasicAuthorization {
    /// Returns the value of an `Authorization` or `Proxy-Authorization` field. User name and password are encoded as
    /// UTF-8.
    ///
    /// - Returns: `nil` if the scheme cannot encode the credential: the user name contains a colon, or the user name or
    ///   the password contains a control character (section 2).
    public static func fieldValue(for credential: Credential) -> String? {
        guard !credential.user.utf8.contains(UInt8(ascii: ":")), !credential.user.containsControlCharacter,
            !credential.password.containsControlCharacter
        else { return nil }
        return "Basic " + Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
    }
}

extension String {
    /// Whether the string contains a C0 or C1 control character or DEL. These are not allowed in a field value.
    var containsControlCharacter: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}
