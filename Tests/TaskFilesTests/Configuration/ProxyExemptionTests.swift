import TaskModel
import Testing

@testable import TaskFiles

@Suite("Servers without a proxy")
struct ProxyExemptionTests {
    @Test(
        "F76: names, suffixes, addresses, networks and ports are read",
        arguments: [
            ("*", ProxyExemption.every), ("Example.org", .name("example.org", port: nil)),
            (".example.org", .name("example.org", port: nil)), ("*.example.org", .name("example.org", port: nil)),
            ("example.org.", .name("example.org", port: nil)), ("h:8080", .name("h", port: 8080)),
            (".h:8080", .name("h", port: 8080)),
            ("10.0.0.0/8", .network(.ipv4(0x0A00_0000, prefixLength: 8), port: nil)),
            ("10.0.0.1", .network(.ipv4(0x0A00_0001, prefixLength: 32), port: nil)),
            ("10.0.0.1:81", .network(.ipv4(0x0A00_0001, prefixLength: 32), port: 81)),
            ("::1", .network(.ipv6(1, prefixLength: 128), port: nil)),
            ("[::1]", .network(.ipv6(1, prefixLength: 128), port: nil)),
            ("[::1]:81", .network(.ipv6(1, prefixLength: 128), port: 81)),
        ])
    func read(text: String, exemption: ProxyExemption) {
        #expect(ProxyExemption(parsing: text) == exemption)
    }

    @Test(
        "what is no server is refused",
        arguments: ["", ".", "h:", "h:0", "h:65536", "h:+1", "a/b", "u@h", "a b", "http://h", "h*", "a.*.b"])
    func none(text: String) {
        #expect(ProxyExemption(parsing: text) == nil)
    }

    @Test("F76: the variable of the environment is a list, of which other programs' entries are passed over")
    func variable() {
        let list = ProxyExemption.list(ofVariable: "localhost,127.0.0.0/8, .corp.example  <local>,http://x")
        #expect(
            list == [
                .name("localhost", port: nil), .network(.ipv4(0x7F00_0000, prefixLength: 8), port: nil),
                .name("corp.example", port: nil),
            ])
        #expect(ProxyExemption.list(ofVariable: "*") == [.every] && ProxyExemption.list(ofVariable: "") == [])
    }

    @Test("F76: network.no-proxy is one server or a list, and the proxy of a host a URL or none")
    func configuration() throws {
        func parse(_ text: String) throws(FileError) -> Configuration { try Configuration(parsing: text, file: "f") }
        #expect(try parse("network: {no-proxy: '*'}").network.proxyExemptions == [.every])
        #expect(try parse("network: {no-proxy: []}").network.proxyExemptions == [])
        #expect(try parse("network: {}").network.proxyExemptions == nil)
        #expect(try parse("network: {no-proxy: [h, 10.0.0.0/8]}").network.proxyExemptions?.count == 2)
        let hosts = try parse("hosts: {a: {proxy: none}, b: {proxy: 'http://p:1'}, c: {connections: 1}}").hosts
        #expect(hosts["a"]?.proxy == "" && hosts["b"]?.proxy == "http://p:1" && hosts["c"]?.proxy == nil)
        for wrong in ["network: {no-proxy: ['a b']}", "hosts: {a: {proxy: nothing}}", "network: {proxy: none}"] {
            #expect(throws: FileError.self) { try parse(wrong) }
        }
    }
}
