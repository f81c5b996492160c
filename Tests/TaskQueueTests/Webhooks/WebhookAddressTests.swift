import Testing

@testable import TaskQueue

@Suite("The shown address of a webhook")
struct WebhookAddressTests {
    @Test(
        "origin and path tell two receivers apart, and no secret is shown",
        arguments: [
            ("https://h.example/dld", "https://h.example:443", "/dld"),
            (
                "http://u:secret@h.example:81/services/T0/B00000/token?key=secret#secret", "http://h.example:81",
                "/ser…/T0/B00…/tok…"
            ),
            ("https://h.example", "https://h.example:443", "/"),
            ("https://h.example?token=/secret", "https://h.example:443", "/"),
            ("https://h.example//ab/", "https://h.example:443", "//ab/"),
            (
                "https://h.example/\u{1F98A}\u{1F98A}\u{1F98A}\u{1F98A}", "https://h.example:443",
                "/\u{1F98A}\u{1F98A}\u{1F98A}…"
            ),
            ("no URL with a secret", "REDACTED", "/"),
        ])
    func shown(url: String, origin: String, path: String) {
        let address = WebhookAddress(of: url)
        #expect(address.origin == origin && address.path == path)
    }
}
