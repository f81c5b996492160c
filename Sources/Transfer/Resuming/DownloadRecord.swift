import FoundationEssentials
import HTTPTypes

/// The request and the destination of a download. With them, resume data are self-sufficient.
///
/// It is a class to keep resume data, and the errors that contain them, small.
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

/// A request in a form for storage, without the changes of adapters, which are applied again.
///
/// It omits authentication data: the credential, the client identity, a proxy's user and password, and the header
/// fields matched by ``FieldRedaction/isSecret(_:)``. The URL is stored unchanged, including any secrets.
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
    private var timeout: Int64?
    private var connectTimeout: Int64?
    private var stallTimeout: Int64?
    private var totalTimeout: Int64?

    init(_ request: TransferRequest) {
        url = request.url
        method = request.method.rawValue
        headerFields = HTTPFields()
        for field in request.headerFields where !FieldRedaction.isSecret(field.name) {
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
        timeout = request.timeout
        connectTimeout = request.connectTimeout
        stallTimeout = request.stallTimeout
        totalTimeout = request.totalTimeout
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
        request.timeout = timeout
        request.connectTimeout = connectTimeout
        request.stallTimeout = stallTimeout
        request.totalTimeout = totalTimeout
        return request
    }
}
