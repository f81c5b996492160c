import Testing

@testable import Transfer

@Suite("The Basic scheme (RFC 7617)")
struct BasicAuthorizationTests {
    @Test(
        "name and password go out as UTF-8 in base 64",
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123£", "Basic dGVzdDoxMjPCow=="), ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
        ])
    func values(user: String, password: String, value: String) {
        #expect(BasicAuthorization.fieldValue(for: Credential(user: user, password: password)) == value)
    }

    @Test(
        "what the scheme cannot carry is refused",
        arguments: [
            ("a:b", "c"), ("a\r\nb", "c"), ("a\u{0}", "c"), ("a", "b\nc"), ("a", "\u{7F}"), ("a\u{85}", "c"),
            ("\t", ""),
        ])
    func refusals(user: String, password: String) {
        #expect(BasicAuthorization.fieldValue(for: Credential(user: user, password: password)) == nil)
    }
}
