import Crypto
import FoundationEssentials
import HTTPTypes
import TaskFiles
import TaskModel
import Transfer

/// The message that tells a receiver of an event.
struct WebhookMessage {
    /// The event as JSON, with the fields of the control protocol's notification `event`.
    let body: [UInt8]
    let request: TransferRequest

    /// The maximum number of bytes of a response that are read.
    private static let responseLimit: Int64 = 64 << 10

    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()

    /// Creates a message.
    ///
    /// - Parameters:
    ///   - key: the idempotency key.
    ///   - now: the time of the signature in milliseconds since 1970.
    init(_ event: TaskEvent, to webhook: Webhook, key: String, now: Milliseconds) throws {
        body = Array(try Self.encoder.encode(event))
        var fields = HTTPFields()
        for line in webhook.headers {
            guard let (name, value) = TaskSpecification.splitHeader(line), let name = HTTPField.Name(name) else {
                continue
            }
            fields.append(HTTPField(name: name, value: value))
        }
        fields[.contentType] = "application/json"
        if let name = HTTPField.Name.event { fields[name] = event.type.rawValue }
        if let name = HTTPField.Name.idempotencyKey { fields[name] = key }
        if let secret = webhook.secret, let name = HTTPField.Name.signature {
            fields[name] = Self.signature(of: body, secret: secret, seconds: now / 1000)
        }
        var request = TransferRequest(url: webhook.url, method: .post, headerFields: fields)
        // The message and its signature are for this receiver alone.
        request.redirects = .stop
        request.maximumBodySize = Self.responseLimit
        self.request = request
    }

    /// Returns the value of `Dld-Signature`: the time and the HMAC-SHA-256 (RFC 2104) of `TIME.BODY` in hexadecimal
    /// digits, as `t=TIME,v1=HMAC`.
    static func signature(of body: [UInt8], secret: String, seconds: Int64) -> String {
        var hmac = HMAC<SHA256>(key: SymmetricKey(data: Array(secret.utf8)))
        hmac.update(data: Array("\(seconds).".utf8))
        hmac.update(data: body)
        return "t=\(seconds),v1=\(hmac.finalize().hexadecimal)"
    }
}

extension HTTPField.Name {
    /// The type of the event.
    fileprivate static let event = HTTPField.Name("Dld-Event")
    fileprivate static let signature = HTTPField.Name("Dld-Signature")
    /// A key that is the same for each attempt to send an event
    /// (draft-ietf-httpapi-idempotency-key-header).
    fileprivate static let idempotencyKey = HTTPField.Name("Idempotency-Key")
}
