import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing
import Transfer

/// A manager, and the httpbin that its requests go to.
struct Client: Sendable {
    let server: HTTPBin
    let manager: SessionManager

    /// - Parameter change: changes the configuration, which has time-outs that end before a test's time limit.
    init(startRequestsImmediately: Bool = true, _ change: (inout SessionConfiguration) -> Void = { _ in }) async throws
    {
        server = try await HTTPBin.shared
        manager = try SessionManager(
            configuration: .test(change), startRequestsImmediately: startRequestsImmediately)
    }

    func url(_ path: String) -> String { server.url(path) }

    /// Returns a request to the server.
    func request(_ path: String, _ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:]) -> TransferRequest {
        TransferRequest(url: url(path), method: method, headerFields: fields)
    }

    /// Returns what the server tells about the request it received at `path`.
    func echo(
        _ path: String, _ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:]
    ) async throws -> JSONValue {
        try await manager.request(request(path, method, fields)).validate(statusCode: 200..<300).decoded()
    }

    /// Sends parameters to `/anything`, and returns what the server tells about the request.
    func echo(
        _ parameters: Parameters, _ method: HTTPRequest.Method, _ encoding: any ParameterEncoding
    ) async throws -> JSONValue {
        try await manager.request(url("/anything"), method: method, parameters: parameters, encoding: encoding)
            .validate().decoded()
    }
}

extension SessionConfiguration {
    static func test(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.connectTimeout = 60_000
        configuration.stallTimeout = 60_000
        change(&configuration)
        return configuration
    }
}

extension JSONValue {
    /// The string, if the value is one.
    var text: String? { if case .string(let text) = self { text } else { nil } }
    /// The strings of an array, or the only one.
    var texts: [String] {
        switch self {
        case .string(let text): [text]
        case .array(let elements): elements.compactMap(\.text)
        default: []
        }
    }
    /// The members, if the value is an object.
    var members: [String: JSONValue] { if case .object(let members) = self { members } else { [:] } }

    /// The value of a field in what the server tells about the request.
    func field(_ name: String) -> String? { self["headers"]?[name]?.text }
}

extension RequestBody {
    static func text(_ text: String) -> RequestBody { .data(Array(text.utf8)) }

    /// Returns a body that is produced in these pieces.
    static func pieces(_ pieces: [String], length: Int64? = nil) -> RequestBody {
        .stream(
            BodyStream(length: length) {
                AsyncStream<[UInt8]> { continuation in
                    for piece in pieces { continuation.yield(Array(piece.utf8)) }
                    continuation.finish()
                }
            })
    }
}

extension DataResponse {
    var code: TransferError.Code? { error?.code }
    var status: Int? { head?.status }
    /// The statuses of all exchanges, redirects and challenges included.
    var statuses: [Int?] { metrics.exchanges.map(\.status) }
}

extension DownloadResponse {
    var code: TransferError.Code? { error?.code }
    var status: Int? { head?.status }
}

/// Returns the bytes of httpbin's `/range/count`: the letters from a to z, again and again.
func alphabet(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) } }

func contents(ofFileAt path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path))) }

func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

/// Returns a path segment with everything but letters, digits and `-._~` percent-encoded (RFC 3986, section 2.3).
func segment(_ text: String) -> String {
    text.utf8.map { byte in
        let isPlain =
            byte < 0x80 && (Character(Unicode.Scalar(byte)).isLetter || Character(Unicode.Scalar(byte)).isNumber)
        return isPlain || "-._~".utf8.contains(byte)
            ? String(Unicode.Scalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }.joined()
}

/// A list to which many threads append.
final class Record<Element: Sendable>: Sendable {
    private let list = Mutex<[Element]>([])

    func add(_ element: Element) { list.withLock { $0.append(element) } }

    var all: [Element] { list.withLock { $0 } }
    var count: Int { all.count }
}

/// An error that the library does not know.
struct OwnError: Error, Equatable {
    var number = 7
}

/// A retrier that retries up to `limit` times, and records what it was asked.
final class LimitedRetrier: RequestRetrier {
    let asked = Record<TransferError>()
    private let limit: Int

    init(_ limit: Int) {
        self.limit = limit
    }

    func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        asked.add(error)
        return request.retryCount < limit ? .retry(after: 0) : .doNotRetry
    }
}

/// An adapter that sends each attempt to the next of its paths, and all later ones to the last.
final class PathAdapter: RequestAdapter {
    let adapted = Record<TransferRequest>()
    private let client: HTTPBin
    private let paths: [String]

    init(_ client: Client, _ paths: String...) {
        self.client = client.server
        self.paths = paths
    }

    nonisolated(nonsending) func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
        var changed = request
        changed.url = client.url(paths[min(adapted.count, paths.count - 1)])
        adapted.add(request)
        return changed
    }
}
