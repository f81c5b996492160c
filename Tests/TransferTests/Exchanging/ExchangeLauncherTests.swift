import TestSupport
import Testing

@testable import Transfer

@Suite("The size of a request's head", .timeLimit(.minutes(1)))
struct ExchangeLauncherTests {
    private static let large = String(repeating: "a", count: 130 * 1024)

    /// A request with a large part in one place.
    enum Place: CaseIterable {
        case field, sessionField, target
    }

    private func request(_ place: Place, _ server: ScriptedServer) -> (SessionConfiguration, TransferRequest) {
        var configuration = SessionConfiguration.test()
        var request = TransferRequest(url: server.url("/a"))
        switch place {
        case .field: request.headers["X-Large"] = Self.large
        case .sessionField: configuration.additionalHeaders = ["X-Large: \(Self.large)"]
        case .target: request.url += "?q=" + Self.large
        }
        return (configuration, request)
    }

    @Test("a head that libcurl would not send completely is refused at once", arguments: Place.allCases)
    func refused(place: Place) async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let (configuration, request) = request(place, server)
        let manager = try SessionManager(configuration: configuration)
        let error = await manager.request(request).outcome.error
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("more than 131072") == true, "\(error as Any)")
        #expect(server.requests().isEmpty)
    }
}
