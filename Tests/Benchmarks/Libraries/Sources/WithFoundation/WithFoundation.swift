import Foundation
import FoundationNetworking
import Workload

@main
struct WithFoundation: Client {
    private let session: URLSession

    init(connections: Int) throws {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = connections
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
    }

    func get(_ url: String) async throws -> Int {
        let (data, response) = try await session.data(from: parsed(url))
        try validate(response)
        return data.count
    }

    func download(_ url: String, to path: String) async throws {
        let (file, response) = try await session.download(from: parsed(url))
        try validate(response)
        try FileManager.default.moveItem(at: file, to: URL(fileURLWithPath: path))
    }

    func upload(_ bytes: [UInt8], to url: String) async throws {
        let (_, response) = try await session.upload(for: put(url), from: Data(bytes))
        try validate(response)
    }

    func upload(file path: String, to url: String) async throws {
        let (_, response) = try await session.upload(for: put(url), fromFile: URL(fileURLWithPath: path))
        try validate(response)
    }

    func close() async throws { session.finishTasksAndInvalidate() }

    static func main() async { await Workload.run(by: Self.self) }

    private func parsed(_ url: String) throws -> URL {
        guard let parsed = URL(string: url) else { throw URLError(.badURL) }
        return parsed
    }

    private func put(_ url: String) throws -> URLRequest {
        var request = URLRequest(url: try parsed(url))
        request.httpMethod = "PUT"
        return request
    }

    private func validate(_ response: URLResponse) throws {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw UnexpectedStatus(status) }
    }
}
