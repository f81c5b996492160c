import HTTPTypes
import Transfer
import Workload

@main
struct WithTransfer: Client {
    private let manager: SessionManager

    init(connections: Int) throws {
        // A session opens as many connections as there are requests at once.
        manager = try SessionManager()
    }

    func get(_ url: String) async throws -> Int { try await manager.request(url).validate().value.count }

    func download(_ url: String, to path: String) async throws {
        _ = try await manager.download(url, to: path).validate().value
    }

    func upload(_ bytes: [UInt8], to url: String) async throws {
        _ = try await manager.upload(.data(bytes), to: url, method: .put).validate().value
    }

    func upload(file path: String, to url: String) async throws {
        _ = try await manager.upload(.file(UploadSource(path: path)), to: url, method: .put).validate().value
    }

    func close() async throws { manager.session.finishTasksAndInvalidate() }

    static func main() async { await Workload.run(by: Self.self) }
}
