import TaskFiles
import Testing
import Transfer

@testable import TaskQueue
@testable import dld

@Suite("The preparation of hosts")
struct HostPlannerTests {
    private func planner(
        _ hosts: String, isSystem: Bool = true, administrators: AdministratorGroup? = nil, reads: Bool = true
    ) throws(FileError) -> HostPlanner {
        let variables = ["STATE_DIRECTORY": isSystem ? "/var/lib/dld" : "/home/u/state", "HOME": "/nonexistent"]
        return HostPlanner(
            configuration: try Configuration(parsing: "hosts: {\(hosts)}", file: "f"),
            environment: ProcessEnvironment(variables: variables, uid: 900), administrators: administrators,
            readsCredentials: reads)
    }

    private func fault(_ hosts: String, reads: Bool = true) -> String? {
        do throws(FileError) {
            let planner = try planner(hosts, reads: reads)
            _ = (try planner.access(), try planner.trust())
            return nil
        } catch {
            return error.description
        }
    }

    @Test("without owners they are root and the group of administrators, and a user's own daemon serves that user")
    func fallback() throws {
        let group = AdministratorGroup(gid: 70, lookUp: { $0 == 5 })
        let hosts = "h: {headers: ['X-A: 1']}"
        let system = try #require(try planner(hosts, administrators: group).access()["h"]).owners
        #expect([0, 5].allSatisfy(system.contains) && ![4, 900].contains(where: system.contains))
        let alone = try #require(try planner(hosts).access()["h"]).owners
        #expect(alone.contains(0) && !alone.contains(5))
        let own = try #require(try planner(hosts, isSystem: false, administrators: group).access()["h"]).owners
        #expect(own.contains(900) && ![0, 5].contains(where: own.contains))
    }

    @Test("named owners alone count: users by name or number, the members of groups, or everyone")
    func owners() throws {
        func owners(_ list: String) throws -> HostOwners {
            try #require(try planner("h: {headers: ['X-A: 1'], owners: \(list)}").access()["h"]).owners
        }
        #expect(try owners("[root]").contains(0) && !owners("[root]").contains(1))
        #expect(try owners("[1234567]").contains(1_234_567) && !owners("[1234567]").contains(0))
        #expect(try owners("['@root']").contains(0) && !owners("['@root']").contains(1_234_567))
        let several = try owners("['@daemon', '@root', 1234567]")
        #expect(several.contains(0) && several.contains(1_234_567) && !several.contains(1_234_568))
        #expect(try owners("['@0']").contains(0) && owners("['*']").contains(1_234_567))
    }

    @Test("an unknown owner, a credential that is missing and a pin that is none are faults where they stand")
    func faults() throws {
        let access = "h: {credential: a, owners: "
        #expect(
            fault(access + "[root, no-such-user]}", reads: false)
                == "f:1:43: \"owners\": there is no user no-such-user on this system")
        #expect(
            fault(access + "['@no-such-group']}", reads: false)?.hasPrefix(
                "f:1:37: \"owners\": there is no group no-such") == true)
        #expect(
            fault(access + "[root]}")?.hasPrefix("f:1:25: \"credential\": CREDENTIALS_DIRECTORY is not set") == true)
        #expect(fault(access + "[root]}", reads: false) == nil)
        let digits = String(repeating: "A", count: 43)
        #expect(fault("h: {trust: {pin: ['sha256//\(digits)=']}}") == nil)
        for pin in ["\(digits)=", "sha256//\(digits)", "sha256//x", "sha1//\(digits)="] {
            let message = fault("h: {trust: {pin: ['sha256//\(digits)=', '\(pin)']}}")
            #expect(
                message?.hasPrefix("f:1:83: \"pin\" must be sha256// and 44") == true, "\(String(describing: message))")
        }
    }

    @Test("a file whose first certificate is not readable is a fault where it is named")
    func unreadableCertificates() throws {
        let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        let configuration = try Configuration(
            parsing: "hosts: {h: {trust: {ca-file: /ca.pem}}}", file: "f", readFile: { _, _ in Array(text.utf8) })
        let planner = HostPlanner(
            configuration: configuration, environment: ProcessEnvironment(variables: [:], uid: 900),
            administrators: nil, readsCredentials: true)
        let error = #expect(throws: FileError.self) { try planner.trust() }
        #expect(error?.description.hasPrefix("f:1:30: \"ca-file\" names a file whose first") == true)
    }

    @Test("certificates and pins reach the session by host")
    func trust() throws {
        let pin = "sha256//" + String(repeating: "A", count: 43) + "="
        let trust = try planner("h: {trust: {pin: '\(pin)'}}, '*.h': {trust: default}, i: {connections: 1}").trust()
        #expect(trust == ["h": HostTrust(pins: [try #require(PublicKeyPin(pin))]), "*.h": HostTrust()])
    }
}
