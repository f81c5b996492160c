public import FoundationEssentials

/// An encoder of `Encodable` parameters into a request, either into its URL or into a body.
public protocol ParameterEncoder: Sendable {
    /// Returns the request with the parameters encoded into it.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for values that the format cannot represent;
    ///   ``TransferError/underlying`` is the error of an `encode(to:)` that failed.
    func encode(
        _ parameters: some Encodable & Sendable, into request: TransferRequest
    ) throws(TransferError) -> EncodedRequest
}

/// An encoder of parameters as JSON in the body, whatever the method. The parameters may be of any type: an array or a
/// single value too.
public struct JSONParameterEncoder: ParameterEncoder {
    /// The encoder of JSON on one line, with sorted names; the same as `JSONParameterEncoder()`.
    public static let `default` = JSONParameterEncoder()

    private let makeEncoder: @Sendable () -> JSONEncoder

    /// Creates an encoder of JSON on one line, with sorted names, so that equal parameters give equal bytes.
    public init() {
        makeEncoder = {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return encoder
        }
    }

    /// Creates an encoder with settings of the caller's.
    ///
    /// - Parameter encoder: evaluated for each request.
    public init(encoder: @autoclosure @escaping @Sendable () -> JSONEncoder) {
        makeEncoder = encoder
    }

    public func encode(
        _ parameters: some Encodable & Sendable, into request: TransferRequest
    ) throws(TransferError) -> EncodedRequest {
        let body: Data
        do {
            body = try makeEncoder().encode(parameters)
        } catch {
            throw .parameters(error)
        }
        return EncodedRequest(request, body: Array(body), contentType: JSONEncoding.contentType)
    }
}

/// An encoder of parameters as `name=value` pairs, in the query or the body.
///
/// The pairs are those of ``URLEncoding``, with its rules for places, names, arrays, Booleans and spaces. The
/// parameters are a value with named properties, or a dictionary with text as keys. A property that is `nil` is omitted
/// if its type encodes it so, as synthesized conformances do. `Data` is encoded in Base64, a `URL` as its text.
public struct URLEncodedFormParameterEncoder: ParameterEncoder {
    /// The representation of dates.
    public enum DateEncoding: Sendable {
        /// The representation of the type `Date` itself: the seconds since 2001 began in UTC, as with `JSONEncoder`.
        case deferredToDate
        /// Seconds since 1970, with a fraction if there is one.
        case secondsSince1970
        /// Whole milliseconds since 1970.
        case millisecondsSince1970
        /// Text such as `2025-01-31T08:00:00Z` (RFC 3339, section 5.6), in whole seconds.
        case iso8601
    }

    /// The encoder with the default rules of ``URLEncoding``; the same as `URLEncodedFormParameterEncoder()`.
    public static let `default` = URLEncodedFormParameterEncoder()

    /// The place and the form of the pairs.
    public var encoding: URLEncoding
    /// The representation of dates.
    public var dateEncoding: DateEncoding

    /// Creates an encoder.
    ///
    /// - Parameters:
    ///   - encoding: the place and the form of the pairs.
    ///   - dateEncoding: the representation of dates.
    public init(encoding: URLEncoding = URLEncoding(), dateEncoding: DateEncoding = .deferredToDate) {
        self.encoding = encoding
        self.dateEncoding = dateEncoding
    }

    public func encode(
        _ parameters: some Encodable & Sendable, into request: TransferRequest
    ) throws(TransferError) -> EncodedRequest {
        let value: ParameterValue
        do {
            value = try ParameterValueEncoder.value(of: parameters, dates: dateEncoding)
        } catch {
            throw .parameters(error)
        }
        switch value {
        case .dictionary(let members): return try encoding.encode(request, with: members)
        case .null: return EncodedRequest(request: request)
        default:
            throw TransferError(.invalidRequest, "a form needs a name for each parameter, and the parameters have none")
        }
    }
}

extension ParameterEncoder where Self == JSONParameterEncoder {
    /// JSON in the body, with sorted names.
    public static var json: JSONParameterEncoder { JSONParameterEncoder() }

    /// JSON in the body, with settings of the caller's.
    ///
    /// - Parameter encoder: evaluated for each request.
    public static func json(encoder: @autoclosure @escaping @Sendable () -> JSONEncoder) -> JSONParameterEncoder {
        JSONParameterEncoder(encoder: encoder())
    }
}

extension ParameterEncoder where Self == URLEncodedFormParameterEncoder {
    /// Pairs in the query for GET, HEAD and DELETE, in the body for every other method.
    public static var urlEncodedForm: URLEncodedFormParameterEncoder { URLEncodedFormParameterEncoder() }

    /// Pairs whose place and form `encoding` defines.
    public static func urlEncodedForm(
        encoding: URLEncoding = URLEncoding(),
        dateEncoding: URLEncodedFormParameterEncoder.DateEncoding = .deferredToDate
    ) -> URLEncodedFormParameterEncoder {
        URLEncodedFormParameterEncoder(encoding: encoding, dateEncoding: dateEncoding)
    }
}

extension TransferError {
    /// Returns the error for parameters whose encoding failed.
    static func parameters(_ error: any Error) -> TransferError {
        if let error = error as? TransferError { return error }
        let reason = (error as? EncodingError).map(reason(of:)) ?? "\(error)"
        return TransferError(.invalidRequest, "the parameters cannot be encoded: \(reason)", underlying: error)
    }

    private static func reason(of error: EncodingError) -> String {
        guard case .invalidValue(_, let context) = error else { return "\(error)" }
        let path = context.codingPath.map(\.stringValue).joined(separator: ".")
        return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
    }
}
