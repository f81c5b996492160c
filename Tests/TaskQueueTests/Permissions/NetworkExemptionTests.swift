import Synchronization
import TaskFiles
import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Owners to whom the denied networks do not apply")
struct NetworkExemptionTests {
    private static let local = [IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)]

    private static func session() -> SessionConfiguration {
        var session = SessionConfiguration()
        session.deniedNetworks = local
        return session
    }

    @Test("nobody is exempt by default; with administrators root is, and whoever is a member")
    func owners() {
        #expect(!NetworkExemption.none.includes(0) && !NetworkExemption.none.includesConfiguration)
        let exemption = NetworkExemption.administrators { $0 == 7 }
        #expect(exemption.includes(0) && exemption.includes(7) && !exemption.includes(8))
        #expect(exemption.includesConfiguration)
    }

    @Test("A11: each attempt asks anew whether the owner is a member, and a reload changes whom to ask")
    func attempts() async throws {
        let members = Notebook<UInt32>()
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 10))]])
        let fixture = try await QueueFixture(session: Self.session()) { settings in
            settings.networkExemption = .administrators { members.contains($0) }
        }
        let id = try await fixture.add(server.url("/f"))
        let refused = try await fixture.status(id, once: [.failed])
        #expect(refused.error?.code == .addressNotAllowed && refused.attempts == 1)
        let mine = try await fixture.add(server.url("/f"), by: QueueFixture.administrator)
        #expect(try await fixture.status(mine, once: [.completed, .failed]).state == .completed)

        members.insert(QueueFixture.me.uid)
        _ = try await fixture.queue.apply(.retry, to: [id], by: QueueFixture.me)
        #expect(try await fixture.completed(id).state == .completed)

        var settings = fixture.settings
        settings.networkExemption = .none
        _ = try await fixture.queue.apply(settings, session: Self.session())
        let later = try await fixture.add(server.url("/f"), by: QueueFixture.administrator)
        #expect(try await fixture.status(later, once: [.completed, .failed]).error?.code == .addressNotAllowed)
        #expect(server.requests().count == 2)
    }

    @Test("A11: webhooks are the administrator's: exempt with administrators, and refused with advice without")
    func webhooks() async throws {
        let time = ManualClock()
        let server = try ScriptedServer(["/h": [.status(200)]])
        var webhook = Webhook(url: server.url("/h"))
        webhook.types = [.added]
        let fixture = try await QueueFixture(clock: time.clock, session: Self.session()) { $0.webhooks = [webhook] }
        _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        let message = try await eventually(have: "the failure") {
            await fixture.queue.webhookStatuses.first?.failure?.message
        }
        #expect(message.hasPrefix("address-not-allowed: the address 127.0.0.1 is in the denied network 127.0.0.0/8; "))
        #expect(message.contains("set network.exempt to administrators"))
        #expect(server.connectionsAccepted == 0)

        var settings = fixture.settings
        settings.networkExemption = .administrators { _ in false }
        _ = try await fixture.queue.apply(settings, session: Self.session())
        try await eventually(that: "the event arrives") { server.requests(for: "/h").count == 1 }
    }
}

/// A set that is shared between threads.
private final class Notebook<Element: Hashable & Sendable>: Sendable {
    private let elements = Mutex<Set<Element>>([])

    func contains(_ element: Element) -> Bool { elements.withLock { $0.contains(element) } }

    func insert(_ element: Element) { elements.withLock { _ = $0.insert(element) } }
}
