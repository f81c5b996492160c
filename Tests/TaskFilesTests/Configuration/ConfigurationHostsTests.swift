import Testing

@testable import TaskFiles

@Suite("Credentials, headers, owners and trust of hosts in the configuration")
struct ConfigurationHostsTests {
    private static let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

    private func parse(_ text: String) throws -> Configuration {
        try Configuration(
            parsing: text, file: "/etc/dld/f",
            readFile: reading([
                "/etc/dld/token": "X-Token: t\nX-Other: o\n", "/ca.pem": Self.certificate, "/no.pem": "text",
            ]))
    }

    @Test("the keys are read, with the scheme of the pattern")
    func keys() throws {
        let text = """
            hosts:
              https://A.example: {credential: site, owners: [ann, 1001, '@staff', '@50', '*']}
              b.example: {headers: ['X-A: 1', '@token']}
              '*.example': {trust: default}
              c.example: {trust: {ca-file: /ca.pem, pin: 'sha256//x'}, connections: 2}
              d.example: {trust: {pin: [a, b]}}
            """
        let configuration = try parse(text)
        let hosts = configuration.hosts
        var access = Configuration.HostAccess()
        (access.scheme, access.credential) = ("https", "site")
        access.owners = [.user("ann"), .user("1001"), .group("staff"), .group("50"), .everyone]
        #expect(hosts["a.example:443"]?.access == access && hosts["a.example:443"]?.trust == nil)
        #expect(hosts["b.example"]?.access.headers == ["X-A: 1", "X-Token: t", "X-Other: o"])
        #expect(hosts["b.example"]?.access.owners == nil)
        #expect(hosts["*.example"]?.trust == Configuration.HostTrust())
        #expect(hosts["c.example"]?.trust?.certificates == Self.certificate)
        #expect(hosts["c.example"]?.trust?.pins == ["sha256//x"])
        #expect(hosts["d.example"]?.trust?.pins == ["a", "b"])
        #expect(configuration.places == [.init(path: "/ca.pem", use: .certificates)])
        let position = Configuration.position(of: "owners", ofHost: "a.example:443", at: 1)
        #expect(configuration.positions.error(at: position, "m").description == "/etc/dld/f:2:55: m")
    }

    @Test(
        "wrong values are refused where they stand",
        arguments: [
            ("credential: a/b", 13, 25, "the name of a file with a credential"),
            ("credential: ~", 13, 25, "has no value"), ("owners: [a]", 13, 21, "has no effect without \"credential\""),
            ("credential: a, owners: []", 13, 36, "names no one"),
            ("credential: a, owners: a", 13, 36, "a list of users"),
            ("credential: a, owners: [a, 'b c']", 13, 40, "a user's name or number"),
            ("credential: a, owners: ['@']", 13, 37, "a user's name or number"),
            ("headers: [X]", 13, 22, "not of the form"), ("headers: ['Range: x']", 13, 22, "set by the daemon"),
            ("headers: ['Proxy-Authorization: x']", 13, 22, "a field for a proxy"),
            ("headers: ['@none']", 13, 23, "cannot open /etc/dld/none"),
            ("trust: none", 13, 20, "default, or a mapping"), ("trust: {}", 13, 20, "default, or a mapping"),
            ("trust: {ca-file: ca.pem}", 13, 30, "give an absolute path"),
            ("trust: {ca-file: /no.pem}", 13, 30, "without a certificate in PEM"),
            ("trust: {ca-file: /none.pem}", 13, 30, "cannot open /none.pem"),
            ("trust: {pin: []}", 13, 26, "1 to 32 pins"), ("trust: {pins: []}", 13, 21, "did you mean \"pin\"?"),
        ])
    func wrongValues(text: String, start: Int, column: Int, message: String) {
        let error = #expect(throws: FileError.self) { try parse("hosts: {h: {\(text)}}") }
        #expect(error?.message.contains(message) == true, "\(String(describing: error))")
        #expect(error?.column == column, "\(String(describing: error))")
    }
}
