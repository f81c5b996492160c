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
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1), ("Mon, 29 Feb 1904 12:00:00 GMT", -2_077_704_000),
            ("Tue, 06 Nov 1900 08:49:37 GMT", -2_182_259_423), ("Mon, 15 Jun 2150 01:02:03 GMT", 5_694_541_323),
            ("Sat, 01 Jan 1583 00:00:00 GMT", -12_212_553_600),
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
        "other zones, two-digit years and zones in the last form are understood as servers send them",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 1994 08:49:37 -0000",
            "Sun, 06 Nov 1994 10:49:37 +0200", "Sun, 06 Nov 1994 03:19:37 -0530", "Sun, 06 Nov 1994 08:49:37 Z",
            "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 UTC", "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 UTC", "Sun, 06-Nov-94 08:49:37 +0000", "Sun Nov  6 08:49:37 UTC 1994",
            "Sun Nov  6 08:49:37 1994 GMT", "Sun Nov  6 08:49:37 +0000 1994", "Sun Nov  6 09:49:37 1994 +0100",
        ])
    func deviating(text: String) {
        #expect(HTTPDate.parse(text) == 784_111_777)
    }

    @Test(
        "anything else is none",
        arguments: [
            "", "Sun", "Sunday, 06-Nov-94 08:49:37", "Sun Nov  6 08:49:37 94", "Sunday, 06-Nov-194 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 +2400", "Sun, 06 Nov 1994 08:49:37 0000",
            "Sun, 06 Nov 1994 08:49:37 +00:00", "Sun Nov  6 08:49:37 1994 1994", "Sun Nov  6 08:49:37 UTC UTC",
            "Sun, 31 Feb 1994 08:49:37 GMT", "Tue, 29 Feb 2100 00:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun Nov  6 94 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Mon, 01 Jan 0001 00:00:00 GMT",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        ])
    func bad(text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }
}
