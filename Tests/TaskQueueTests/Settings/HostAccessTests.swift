import HTTPTypes
import TaskFiles
import TaskModel
import Testing

@testable import TaskQueue
@testable import Transfer

@Suite("What requests to a host are sent with")
struct HostAccessTests {
    private let ann: UInt32 = 1_001
    private let ben: UInt32 = 1_002

    private func request(
        _ url: String, by owner: UInt32, _ hosts: [String: HostAccess],
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) -> TransferRequest {
        var settings = QueueSettings(Configuration(), downloadDirectory: "/d", daemonUser: 900)
        settings.hostAccess = HostTable(hosts)
        var specification = TaskSpecification(url: url)
        change(&specification)
        var request = TransferRequest(url: url)
        for header in specification.headers {
            guard let (name, value) = TaskSpecification.splitHeader(header), let name = HTTPField.Name(name) else {
                continue
            }
            request.headerFields.append(HTTPField(name: name, value: value))
        }
        var known = TaskLogin.Known()
        TaskLogin(settings: settings, owner: owner).apply(to: &request, specification, &known)
        return request
    }

    private func token(_ text: String, _ users: Set<UInt32>, scheme: String? = nil, headers: [String] = [])
        -> HostAccess
    {
        HostAccess(scheme: scheme, credential: .bearer(text), headers: headers, owners: HostOwners(users: users))
    }

    @Test("the most specific entry of which the owner is one counts")
    func specific() {
        let hosts = [
            "*.example": token("wild", [ann, ben]), "a.example": token("name", [ann]),
            "a.example:8443": token("port", [ben]),
        ]
        func sent(_ url: String, _ owner: UInt32) -> Credential? { request(url, by: owner, hosts).credential }
        #expect(sent("https://a.example/f", ann) == .bearer("name"))
        #expect(sent("https://a.example/f", ben) == .bearer("wild"))
        #expect(sent("https://a.example:8443/f", ben) == .bearer("port"))
        #expect(sent("https://a.example:8443/f", ann) == .bearer("name"))
        #expect(sent("https://A.Example./f", ann) == .bearer("name") || sent("https://A.Example./f", ann) == nil)
        #expect(sent("https://b.example/f", ben) == .bearer("wild"))
        #expect(sent("https://example/f", ann) == nil && sent("https://a.example.org/f", ann) == nil)
        #expect(sent("https://a.example/f", 0) == nil && sent("https://a.example/f", 900) == nil)
    }

    @Test("an unencrypted protocol gets nothing unless the pattern names it, and a named scheme is the only one")
    func schemes() {
        let headers = ["X-Token: t"]
        let any = ["h": token("t", [ann], headers: headers)]
        let plain = ["h:80": token("t", [ann], scheme: "http", headers: headers)]
        #expect(request("https://h/f", by: ann, any).credential == .bearer("t"))
        #expect(request("http://h/f", by: ann, any).credential == nil)
        #expect(request("http://h/f", by: ann, any).headerFields.isEmpty)
        #expect(request("http://h/f", by: ann, plain).credential == .bearer("t"))
        #expect(request("http://h/f", by: ann, plain).headerFields == [HTTPField.Name("X-Token")!: "t"])
        #expect(request("https://h:80/f", by: ann, plain).credential == nil)
    }

    @Test("a login of the task's own takes its place; the name of the credential's user alone does not")
    func own() {
        let owners = HostOwners(users: [ann])
        let hosts = [
            "h": HostAccess(
                credential: .password(user: "site", password: "p"), headers: ["Authorization: x", "X-A: 1", "X-B: 2"],
                owners: owners)
        ]
        let site = Credential(user: "site", password: "p")
        #expect(request("https://h/f", by: ann, hosts).credential == site)
        #expect(request("https://site@h/f", by: ann, hosts).credential == site)
        #expect(request("https://site:q@h/f", by: ann, hosts).credential == nil)
        #expect(request("https://other@h/f", by: ann, hosts).credential == nil)
        let named = request("https://h/f", by: ann, hosts) { ($0.user, $0.password) = ("u", "q") }
        #expect(named.credential == Credential(user: "u", password: "q"))
        #expect(named.headerFields[.authorization] == nil)
        let field = request("https://h/f", by: ann, hosts) { $0.headers = ["authorization: own", "x-a: own"] }
        #expect(field.credential == nil)
        #expect(
            field.headerFields.map { "\($0.name.canonicalName) \($0.value)" } == [
                "authorization own", "x-a own", "x-b 2",
            ])
    }

    @Test("nothing is sent where the owner chose the trusted certificates, or the proxy of an unencrypted protocol")
    func chosenByOwner() {
        let hosts = [
            "h:443": token("t", [ann], scheme: "https", headers: ["X-A: 1"]),
            "h:80": token("t", [ann], scheme: "http", headers: ["X-A: 1"]),
        ]
        for (url, isSent) in [("https://h/f", true), ("http://h/f", false)] {
            let proxied = request(url, by: ann, hosts) { $0.proxy = "http://proxy:3128" }
            #expect((proxied.credential != nil) == isSent && proxied.headerFields.isEmpty != isSent)
            let trusting = request(url, by: ann, hosts) { $0.caCertificates = "c" }
            #expect(trusting.credential == nil && trusting.headerFields.isEmpty)
            let insecure = request(url, by: ann, hosts) { $0.insecure = true }
            #expect(insecure.credential == nil && insecure.headerFields.isEmpty)
        }
    }

    @Test("each credential is used by the protocols that have a use for it")
    func kinds() {
        let owners = HostOwners(includesEveryone: true)
        func made(_ scheme: String, _ credential: HostCredential) -> TransferRequest {
            request(
                "\(scheme)://h/f", by: ben,
                ["h": HostAccess(scheme: scheme, credential: credential, headers: ["X-A: 1"], owners: owners)])
        }
        for scheme in ["http", "https", "ftp", "ftps", "sftp"] {
            #expect(
                made(scheme, .password(user: "u", password: "p")).credential == Credential(user: "u", password: "p"))
            #expect((made(scheme, .bearer("t")).credential != nil) == scheme.hasPrefix("http"))
            let identity = made(scheme, .certificate("c", key: "k", passphrase: "p")).identity
            let expected = ClientIdentity(certificate: "c", key: "k", passphrase: "p")
            #expect(identity == (scheme == "https" || scheme == "ftps" ? expected : nil))
            let key = made(scheme, .sshKey(user: "u", key: "k", passphrase: nil)).credential
            #expect(key == (scheme == "sftp" ? .privateKey(user: "u", text: "k") : nil))
            #expect(made(scheme, .bearer("t")).headerFields.isEmpty == !scheme.hasPrefix("http"))
        }
    }

    @Test("a URL that the engine reads otherwise gets nothing")
    func otherReading() {
        let hosts = ["h": token("t", [ann]), "*.h": token("t", [ann])]
        for url in ["https://a@b@h/f", "https://%68/f", "https://h%2Ex/f", "https://h\\@x/f", "https:/h/f", "h"] {
            #expect(request(url, by: ann, hosts).credential == nil, "\(url)")
        }
    }
}
