import Testing

@testable import HTTPMessages

@Suite("Dates of HTTP")
struct HTTPDateTests {
    @Test(
        "the preferred form, in seconds since 1970",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799), ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] as [(String, Int64)])
    func good(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text) == seconds)
    }

    @Test(
        "a single digit and a space too many are understood",
        arguments: [
            ("Sun, 6 Nov 1994 08:49:37 GMT", 784_111_777), ("Sun,  06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sun, 06 Nov 1994 8:49:37 GMT", 784_111_777),
        ] as [(String, Int64)])
    func nearly(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text) == seconds)
    }

    @Test(
        "the two old forms too, as RFC 9110, section 5.6.7 wants it",
        arguments: [
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov 16 08:49:37 1994", 784_975_777), ("Sunday, 06-Nov-33 08:49:37 GMT", 2_014_879_777),
            ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
        ] as [(String, Int64)])
    func old(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text) == seconds)
    }

    @Test(
        "anything else is none",
        arguments: [
            "", "Sun", "Sunday, 06-Nov-94 08:49:37", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov  6 08:49:37 94",
            "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT", "Tue, 29 Feb 2100 00:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun Nov  6 94 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 1900 08:49:37 GMT",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        ])
    func bad(text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }
}
