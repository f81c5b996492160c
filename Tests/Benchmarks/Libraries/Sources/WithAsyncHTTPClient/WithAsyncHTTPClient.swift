import AsyncHTTPClient
import NIOCore
import Workload
import _NIOFileSystem

@main
struct WithAsyncHTTPClient: Client {
    private let client: HTTPClient

    init(connections: Int) throws {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func get(_ url: String) async throws -> Int {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(300))
        try validate(response)
        return try await response.body.collect(upTo: 256 << 20).readableBytes
    }

    func download(_ url: String, to path: String) async throws {
        let delegate = try FileDownloadDelegate(path: path)
        let request = try HTTPClient.Request(url: url)
        let head = try await client.execute(request: request, delegate: delegate).futureResult.get().head
        guard head.status.code / 100 == 2 else { throw UnexpectedStatus(Int(head.status.code)) }
    }

    func upload(_ bytes: [UInt8], to url: String) async throws {
        try await send(.bytes(bytes), to: url)
    }

    func upload(file path: String, to url: String) async throws {
        try await FileSystem.shared.withFileHandle(forReadingAt: FilePath(path)) { file in
            let size = try await file.info().size
            try await send(.stream(file.readChunks(), length: .known(size)), to: url)
        }
    }

    func close() async throws { try await client.shutdown() }

    static func main() async { await Workload.run(by: Self.self) }

    private func send(_ body: HTTPClientRequest.Body, to url: String) async throws {
        var request = HTTPClientRequest(url: url)
        request.method = .PUT
        request.body = body
        let response = try await client.execute(request, timeout: .seconds(300))
        try validate(response)
        _ = try await response.body.collect(upTo: 1 << 20)
    }

    private func validate(_ response: HTTPClientResponse) throws {
        guard (200..<300).contains(Int(response.status.code)) else { throw UnexpectedStatus(Int(response.status.code)) }
    }
}
