import Curl
import TestSupport

@testable import Transfer

/// A request as a server sees it.
struct ModelRequest {
    var url: CurlURL
    /// The value of `Range`, such as `bytes=0-9`.
    var range: String?
    var ifRange: String?

    init(_ url: CurlURL, _ range: RangeRequest) {
        self.url = url
        guard case .range(let from, let last, let ifRange) = range else { return }
        self.range = "bytes=\(from)-\(last.map(String.init) ?? "")"
        self.ifRange = ifRange
    }

    /// The fields that a server looks at, with names in lower case.
    var fields: [(name: String, value: String)] {
        [("range", range), ("if-range", ifRange)].compactMap { name, value in value.map { (name, $0) } }
    }
}

/// What a server sees of its connections when a request arrives.
struct NetworkView {
    /// The number of the request's connection, from 0.
    var connection: Int
    /// The number of requests in progress over other connections.
    var others: Int
    /// Milliseconds since the last response over another connection ended; `nil` if there was none.
    var sinceOther: Int64?
}

/// A server that responds without a socket.
enum ModelServer {
    case versioned(VersionedServer)
    case misbehaving(MisbehavingServer)

    /// - Returns: `nil` if nothing listens at the URL.
    func response(to request: ModelRequest, over network: NetworkView) -> MisbehavingResponse? {
        switch self {
        case .versioned(let server): server.response(to: request)
        case .misbehaving(let server):
            server.response(
                to: ScriptedServer.Request(path: request.url.path, headers: request.fields), port: request.url.port,
                connection: network.connection, others: network.others, sinceOther: network.sinceOther)
        }
    }
}

/// A server with one version of a file at a time.
struct VersionedServer {
    var version = 1
    var sendsRanges = true
    var hasEntityTag = true
    /// Whether it compares `If-Range` with its own tag (RFC 9110, section 13.1.5).
    var honoursIfRange = true
    /// The status of every response in the place of 200 and 206.
    var refusal: Int?
    /// The largest number of bytes in one response, as some servers have it.
    var largestResponse: Int64 = .max
    /// The size of the file.
    var size: Int64 = 0

    private var resource: Resource {
        var resource = Self.resource(version, size: size)
        if !hasEntityTag { resource.entityTag = nil }
        return resource
    }

    static func resource(_ version: Int, size: Int64) -> Resource { Resource(size: size, seed: UInt64(version)) }

    func response(to request: ModelRequest) -> MisbehavingResponse {
        if let refusal { return MisbehavingResponse(refusal, text: String(repeating: "x", count: 1_000)) }
        let question = MisbehavingServer.Question(
            ScriptedServer.Request(path: request.url.path, headers: sendsRanges ? request.fields : []))
        var response = MisbehavingResponse(honest: resource, to: question, ignoresCondition: !honoursIfRange)
        if response.isPart, let range = question.range(of: size), Int64(range.count) > largestResponse {
            let end = range.lowerBound + largestResponse
            response = response.cut(after: largestResponse, .open)
            response.set("Content-Length", "\(largestResponse)")
            response.set("Content-Range", "bytes \(range.lowerBound)-\(end - 1)/\(size)")
        }
        return response
    }
}

/// The connections between a download and its servers.
struct ModelNetwork {
    /// A connection, and whether it carried an earlier exchange.
    struct Connection {
        var number: Int
        var isReused: Bool
    }

    /// The number of connections made so far.
    private(set) var made = 0
    /// Connections that can carry another request, by origin.
    private var idle: [String: [Int]] = [:]
    /// Connections over which a response is in progress.
    private var busy: Set<Int> = []
    /// When the response over a connection ended, or when the server sees that the client closed it.
    private var ends: [Int: Int64] = [:]

    /// Takes a connection for a request.
    mutating func take(to origin: String) -> Connection {
        if let number = idle[origin]?.popLast() { return Connection(number: number, isReused: true) }
        made += 1
        return Connection(number: made - 1, isReused: false)
    }

    /// Records that a request arrives over a connection.
    mutating func begin(_ number: Int, at now: Int64) -> NetworkView {
        let others = busy.filter { $0 != number }
        let later = ends.filter { $0.key != number && !busy.contains($0.key) }
        busy.insert(number)
        return NetworkView(
            connection: number, others: others.count + later.count { $0.value > now },
            sinceOther: later.values.max().map { max(0, now - $0) })
    }

    /// Records the end of a response, or of its connection.
    ///
    /// - Parameters:
    ///   - origin: the server, if the connection can carry another request.
    ///   - time: when the server sees it.
    mutating func end(_ number: Int, keptFor origin: String?, at time: Int64) {
        busy.remove(number)
        ends[number] = time
        if let origin { idle[origin, default: []].append(number) }
    }

    /// Forgets every connection.
    mutating func closeAll() {
        idle = [:]
        busy = []
        ends = [:]
    }
}
