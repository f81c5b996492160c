import FoundationEssentials
import HTTPTypes

/// What makes resume data sufficient by themselves: what was asked for, and where the part and the file belong.
///
/// A class, so that resume data and the errors that carry them stay small.
final class DownloadRecord: Sendable, Equatable, Codable {
    let request: RecordedRequest
    let decision: DownloadDecision

    init(request: RecordedRequest, decision: DownloadDecision) {
        self.request = request
        self.decision = decision
    }

    static func == (left: DownloadRecord, right: DownloadRecord) -> Bool {
        left === right || (left.request == right.request && left.decision == right.decision)
    }
}

/// A request in a form for keeping, as it was before adapters: they are asked again.
///
/// Left out is what proves who asks: the credential, the client's identity, a proxy's user and password, and the header
/// fields that ``CurlCommand/isSecret(_:)`` names. What the URL holds stays in it.
struct RecordedRequest: Sendable, Equatable, Codable {
    private var url: String
    private var method: String
    private var headerFields: HTTPFields
    private var proxy: String?
    private var caCertificates: String?
    private var maximumBodySize: Int64?
    private var maximumRate: Int64?
    private var allowsDowngrade: Bool
    private var redirects: RedirectPolicy
    private var httpVersion: HTTPVersion?
    private var transportSecurity: TransportSecurity?
    private var hostKeys: HostKeyPolicy?

    init(_ request: TransferRequest) {
        url = request.url
        method = request.method.rawValue
        headerFields = HTTPFields()
        for field in request.headerFields where !CurlCommand.isSecret(field.name) {
            headerFields.append(field)
        }
        proxy = request.proxy.map { URLRedaction.redact($0, hidesQuery: false) }
        caCertificates = request.caCertificates
        maximumBodySize = request.maximumBodySize
        maximumRate = request.maximumRate
        allowsDowngrade = request.allowsDowngrade
        redirects = request.redirects
        httpVersion = request.httpVersion
        transportSecurity = request.transportSecurity
        hostKeys = request.hostKeys
    }

    var request: TransferRequest {
        var request = TransferRequest(
            url: url, method: HTTPRequest.Method(method) ?? .get, headerFields: headerFields)
        request.proxy = proxy
        request.caCertificates = caCertificates
        request.maximumBodySize = maximumBodySize
        request.maximumRate = maximumRate
        request.allowsDowngrade = allowsDowngrade
        request.redirects = redirects
        request.httpVersion = httpVersion
        request.transportSecurity = transportSecurity ?? .none
        request.hostKeys = hostKeys
        return request
    }
}
