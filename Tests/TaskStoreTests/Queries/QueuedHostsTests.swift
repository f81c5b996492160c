import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Hosts of queued tasks") struct QueuedHostsTests {
    @Test("of hosts, those with queued tasks of the user are returned")
    func hosts() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add("https://example.org/a")
        let host = Fingerprint.ofHost("https://example.org:443")
        #expect(try fixture.store.queuedHosts(of: 1000, among: [host, 7]) == [host])
        #expect(try fixture.store.queuedHosts(of: 1001, among: [host, 7]) == [])
    }
}
