public import FoundationEssentials
public import HTTPTypes
public import Transfer

/// Responses in short. Each has a `Content-Length` unless its fields frame the body.
extension StubResult {
    /// Returns a response without a body.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - fields: the header fields.
    public static func status(_ status: Int, fields: HTTPFields = [:]) -> StubResult {
        data([], status: status, fields: fields)
    }

    /// Returns a response with a body.
    ///
    /// - Parameters:
    ///   - bytes: the body.
    ///   - type: the media type; `nil` for none.
    ///   - status: the status code.
    ///   - fields: the header fields. They take precedence over those of the body.
    public static func data(
        _ bytes: [UInt8], type: String? = nil, status: Int = 200, fields: HTTPFields = [:]
    ) -> StubResult {
        var fields = fields
        if let type, fields[.contentType] == nil { fields[.contentType] = type }
        if fields[.contentLength] == nil, fields[.transferEncoding] == nil {
            fields[.contentLength] = String(bytes.count)
        }
        return .response(StubbedResponse(head: ResponseHead(status: status, fields: fields), body: bytes))
    }

    /// Returns a response with text in UTF-8.
    ///
    /// - Parameters:
    ///   - text: the body.
    ///   - status: the status code.
    ///   - fields: the header fields. They take precedence over those of the body.
    public static func text(_ text: String, status: Int = 200, fields: HTTPFields = [:]) -> StubResult {
        data(Array(text.utf8), type: "text/plain; charset=utf-8", status: status, fields: fields)
    }

    /// Returns a response with JSON (RFC 8259).
    ///
    /// - Parameters:
    ///   - text: the JSON text. A string as a JSON value is in quotation marks: `.json(#""text""#)`.
    ///   - status: the status code.
    ///   - fields: the header fields. They take precedence over those of the body.
    public static func json(_ text: String, status: Int = 200, fields: HTTPFields = [:]) -> StubResult {
        data(Array(text.utf8), type: "application/json", status: status, fields: fields)
    }

    /// Returns a response with a value as JSON (RFC 8259).
    ///
    ///     stub.on("GET", "https://api.example.org/users") { _ in .json([User(name: "Ada")]) }
    ///
    /// - Parameters:
    ///   - value: the value. A `String` is JSON text already; see ``json(_:status:fields:)``.
    ///   - status: the status code.
    ///   - fields: the header fields. They take precedence over those of the body.
    ///   - encoder: encodes the value; `nil` for JSON on one line, with sorted names.
    /// - Returns: ``StubResult/failure(_:)`` with ``TransferError/Code/invalidRequest`` if the value cannot be encoded.
    public static func json(
        _ value: some Encodable, status: Int = 200, fields: HTTPFields = [:], encoder: JSONEncoder? = nil
    ) -> StubResult {
        do {
            let body = try (encoder ?? Self.encoder()).encode(value)
            return data(Array(body), type: "application/json", status: status, fields: fields)
        } catch {
            return .failure(
                TransferError(
                    .invalidRequest, "the value of the stub cannot be encoded as JSON: \(error)", underlying: error))
        }
    }

    private static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    /// Returns a redirect (RFC 9110, section 15.4).
    ///
    /// - Parameters:
    ///   - url: the value of `Location`, absolute or relative.
    ///   - status: the status code.
    public static func redirect(to url: String, status: Int = 302) -> StubResult {
        .status(status, fields: [.location: url])
    }

    /// Returns a challenge with the status 401 (RFC 9110, section 11.3).
    ///
    /// - Parameter challenge: the value of `WWW-Authenticate`.
    public static func challenge(_ challenge: String = #"Basic realm="stub""#) -> StubResult {
        .status(401, fields: [.wwwAuthenticate: challenge])
    }

    // MARK: Changes

    /// Returns the result with a response that arrives after some time.
    ///
    /// - Parameter milliseconds: the time in milliseconds. Results without a response are not delayed.
    public func delayed(by milliseconds: Int64) -> StubResult {
        changed { $0.delay = milliseconds }
    }

    /// Returns the result with a connection that breaks within the body of the response.
    ///
    /// - Parameters:
    ///   - count: the number of bytes of the body that arrive.
    ///   - error: the error of the connection.
    public func broken(
        after count: Int,
        with error: TransferError = TransferError(.truncated, "the connection was closed before the end of the body")
    ) -> StubResult {
        changed { response in
            response.body = Array(response.body.prefix(max(0, count)))
            response.failure = error
        }
    }

    private func changed(_ change: (inout StubbedResponse) -> Void) -> StubResult {
        guard case .response(var response) = self else { return self }
        change(&response)
        return .response(response)
    }
}
