import Testing

@testable import Transfer

@Suite("The choice of a proxy")
struct ProxyRulesTests {
    private func rules(_ exceptions: [ProxyException], hosts: [String: String] = [:]) -> ProxyRules {
        ProxyRules(proxy: "http://p:1", exceptions: exceptions, hosts: HostTable(hosts))
    }

    @Test("F76: an exception of a name includes the names beneath it, and none that only ends like it")
    func names() {
        let exception = ProxyException.name("Example.org", port: nil)
        for host in ["example.org", "www.example.org", "a.b.example.org", "example.org."] {
            #expect(exception.includes(host, port: 80), "\(host)")
        }
        for host in ["notexample.org", "example.org.evil.test", "org", ""] {
            #expect(!exception.includes(host, port: 80), "\(host)")
        }
        #expect(ProxyException.name("h", port: 8080).includes("h", port: 8080))
        #expect(!ProxyException.name("h", port: 8080).includes("h", port: 80))
        #expect(ProxyException.every.includes("anything", port: 1))
    }

    @Test("F76: an exception of a network includes addresses in every notation, and no names")
    func networks() {
        let four = ProxyException.network(IPNetwork(ipv4: 0x0A00_0000, prefixLength: 8), port: nil)
        #expect(four.includes("10.1.2.3", port: 80) && !four.includes("11.0.0.1", port: 80))
        #expect(!four.includes("ten.example.org", port: 80))
        let six = ProxyException.network(IPNetwork(ipv6: 1, prefixLength: 128), port: 443)
        #expect(six.includes("[::1]", port: 443))
        #expect(!six.includes("[::1]", port: 80) && !six.includes("[::2]", port: 443))
    }

    @Test("F76: a request's own proxy comes first, then that of the host, then the exceptions")
    func order() {
        let rules = rules([.name("direct", port: nil)], hosts: ["h": "http://q:2", "none": "", "direct": "http://q:2"])
        func url(_ host: String, own: String? = nil) -> String? { rules.choose(own: own, for: host, port: 80)?.url }
        #expect(url("other") == "http://p:1" && url("h") == "http://q:2" && url("none") == nil)
        #expect(url("direct") == "http://q:2", "an entry for the host is more specific")
        #expect(url("sub.direct") == nil)
        #expect(url("h", own: "http://o:3") == "http://o:3" && url("none", own: "http://o:3") == "http://o:3")
        #expect(url("other", own: "") == nil)
        #expect(rules.choose(own: "http://o:3", for: "h", port: 80)?.source == .request)
        #expect(rules.choose(own: nil, for: "h", port: 80)?.source == .session)
        #expect(ProxyRules().choose(own: nil, for: "h", port: 80) == nil)
    }

    @Test("the login of a proxy's URL is decoded, and the name in messages is without it")
    func login() {
        var request = TransferRequest(url: "http://h/")
        request.proxy = "http://a%40b:p%3A@proxy.example:3128/"
        let options = ProxyOptions(configuration: .test(), request: request, host: "h", port: 80)
        #expect(options.login == Credential(user: "a@b", password: "p:"))
        #expect(ProxyRefusal(options)?.proxy == "proxy.example:3128")
        request.proxy = "socks5://u@s:1"
        let socks = ProxyOptions(configuration: .test(), request: request, host: "h", port: 80)
        #expect(socks.login == Credential(user: "u", password: "") && !socks.readsRequests)
    }
}
