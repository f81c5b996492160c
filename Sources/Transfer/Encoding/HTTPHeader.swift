import HTTPTypes

/// A header field of a request: a name and a value as text.
///
/// Any text is accepted. A name or value that HTTP does not permit fails the request when it is created; see
/// ``HTTPHeaders``.
public struct HTTPHeader: Sendable, Hashable {
    /// The name; upper and lower case are equivalent.
    public let name: String
    /// The value.
    public let value: String
    /// The reason why there is no value to send, in place of the check of ``value``.
    private(set) var refusal: String?

    /// Creates a header field.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Creates a header field that cannot be sent.
    init(name: String, refusal: String) {
        self.init(name: name, value: "")
        self.refusal = refusal
    }

    /// Returns the field in its checked form.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` with the name of the field if its name is not a token, or its
    ///   value contains a control character or begins or ends with a space (RFC 9110, sections 5.1 and 5.5).
    func field() throws(TransferError) -> HTTPField {
        guard let name = HTTPField.Name(name) else {
            throw TransferError(.invalidRequest, "\(self.name.debugDescription) is not the name of a header field")
        }
        if let refusal { throw TransferError(.invalidRequest, "the header field \(name) has no value: \(refusal)") }
        guard HTTPField.isValidValue(value) else {
            throw TransferError(
                .invalidRequest,
                "the value of the header field \(name) contains a line end or another character that is not permitted")
        }
        return HTTPField(name: name, value: value)
    }
}

extension HTTPHeader: CustomStringConvertible, CustomReflectable {
    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    /// `Name: value`; the value of a field that may be secret is omitted.
    public var description: String {
        let shown = HTTPField.Name(name).map { FieldRedaction.value(of: HTTPField(name: $0, value: value)) }
        return "\(name): \(shown ?? "…")"
    }
}

extension HTTPHeader {
    /// Returns an `Accept` field: the accepted media types (RFC 9110, section 12.5.1).
    public static func accept(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept", value: value) }

    /// Returns an `Accept-Charset` field (RFC 9110, section 12.5.2).
    public static func acceptCharset(_ value: String) -> HTTPHeader {
        HTTPHeader(name: "Accept-Charset", value: value)
    }

    /// Returns an `Accept-Encoding` field (RFC 9110, section 12.5.3). With it, the body of a data request is received
    /// in its coding. Without it, the engine requests the codings that it decodes.
    public static func acceptEncoding(_ value: String) -> HTTPHeader {
        HTTPHeader(name: "Accept-Encoding", value: value)
    }

    /// Returns an `Accept-Language` field (RFC 9110, section 12.5.4).
    public static func acceptLanguage(_ value: String) -> HTTPHeader {
        HTTPHeader(name: "Accept-Language", value: value)
    }

    /// Returns an `Authorization` field (RFC 9110, section 11.6.2).
    public static func authorization(_ value: String) -> HTTPHeader {
        HTTPHeader(name: "Authorization", value: value)
    }

    /// Returns an `Authorization` field with a bearer token (RFC 6750, section 2.1).
    public static func authorization(bearer token: String) -> HTTPHeader { authorization("Bearer \(token)") }

    /// Returns an `Authorization` field with a bearer token; the same as ``authorization(bearer:)``.
    public static func authorization(bearerToken: String) -> HTTPHeader { authorization(bearer: bearerToken) }

    /// Returns an `Authorization` field of the Basic scheme (RFC 7617).
    ///
    /// The field fails the request if the scheme cannot encode the user name or password; see
    /// ``BasicAuthorization/fieldValue(for:)``. A ``Credential`` responds to a Digest challenge as well.
    public static func authorization(user: String, password: String) -> HTTPHeader {
        guard let value = BasicAuthorization.fieldValue(for: Credential(user: user, password: password)) else {
            return HTTPHeader(
                name: "Authorization",
                refusal: "the Basic scheme permits no colon in a user name, and no control characters")
        }
        return authorization(value)
    }

    /// Returns an `Authorization` field of the Basic scheme; the same as ``authorization(user:password:)``.
    public static func authorization(username: String, password: String) -> HTTPHeader {
        authorization(user: username, password: password)
    }

    /// Returns a `Cache-Control` field (RFC 9111, section 5.2).
    public static func cacheControl(_ value: String) -> HTTPHeader { HTTPHeader(name: "Cache-Control", value: value) }

    /// Returns a `Content-Disposition` field (RFC 6266).
    public static func contentDisposition(_ value: String) -> HTTPHeader {
        HTTPHeader(name: "Content-Disposition", value: value)
    }

    /// Returns a `Content-Encoding` field: the coding of the request's body (RFC 9110, section 8.4).
    public static func contentEncoding(_ value: String) -> HTTPHeader {
        HTTPHeader(name: "Content-Encoding", value: value)
    }

    /// Returns a `Content-Type` field: the media type of the request's body (RFC 9110, section 8.3).
    public static func contentType(_ value: String) -> HTTPHeader { HTTPHeader(name: "Content-Type", value: value) }

    /// Returns a `Referer` field (RFC 9110, section 10.1.3).
    public static func referer(_ value: String) -> HTTPHeader { HTTPHeader(name: "Referer", value: value) }

    /// Returns a `User-Agent` field (RFC 9110, section 10.1.5).
    public static func userAgent(_ value: String) -> HTTPHeader { HTTPHeader(name: "User-Agent", value: value) }
}
