import HTTPTypes
import TestSupport
import Testing

@testable import HTTPCaching
@testable import HTTPMessages

@Suite("What a private cache does (RFC 9111)")
struct CacheEvaluationTests {
    /// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since 1970.
    private static let date: Int64 = 784_111_777
    private static let dateField = "Date: Sun, 06 Nov 1994 08:49:37 GMT"

    private func judgement(
        _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get,
        policy: RequestCachePolicy = .useProtocolCachePolicy
    ) -> CacheEvaluation {
        CacheEvaluation(method: method, fields: fields, policy: policy)
    }

    private func stored(_ fields: [String], status: Int = 200, request: HTTPFields = [:]) throws -> CachedResponse {
        try #require(
            judgement(request).stored(
                head(status, [Self.dateField] + fields), body: [1], requestedAt: Self.date, now: Self.date))
    }

    private func verdict(
        after seconds: Int64, _ fields: [String], request: HTTPFields = [:],
        policy: RequestCachePolicy = .useProtocolCachePolicy
    ) throws -> CacheEvaluation.Verdict {
        judgement(request, policy: policy).verdict(stored: try stored(fields), now: Self.date + seconds)
    }

    private let tagged: CacheEvaluation.Verdict = .revalidate([.ifNoneMatch: "\"v\""])

    // MARK: Freshness

    @Test("fresh within max-age, asked about from its end on")
    func maxAge() throws {
        let fields = ["Cache-Control: max-age=60", "ETag: \"v\""]
        #expect(try verdict(after: 59, fields) == .useStored)
        #expect(try verdict(after: 60, fields) == tagged)
        #expect(judgement().verdict(stored: nil, now: 0) == .load)
    }

    @Test("max-age outranks Expires, which outranks the guess; s-maxage is for others")
    func precedence() throws {
        let expires = "Expires: Sun, 06 Nov 1994 08:50:37 GMT"
        #expect(try stored(["Cache-Control: max-age=5", expires]).lifetime == 5)
        #expect(try stored([expires, "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT"]).lifetime == 60)
        #expect(try stored(["Cache-Control: s-maxage=5", expires]).lifetime == 60)
        #expect(try stored(["Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT"]).lifetime == 360)
    }

    @Test("what cannot be read is no lifetime")
    func unreadable() throws {
        let modified = "Last-Modified: Sun, 06 Nov 1993 07:49:37 GMT"
        for field in ["Expires: 0", "Expires: -1", "Expires: soon", "Cache-Control: max-age=soon"] {
            #expect(try stored([field, modified]).lifetime == 0)
        }
        #expect(try stored(["Expires: Sun, 06 Nov 1994 08:49:37 GMT"]).lifetime == 0)
        #expect(try stored(["Expires: Sun, 06 Nov 1990 08:49:37 GMT"]).lifetime == 0)
    }

    @Test("a guess is a tenth, a day at most, and only where the status allows it")
    func heuristics() throws {
        #expect(try stored(["Last-Modified: Sun, 06 Nov 1983 08:49:37 GMT"]).lifetime == 86_400)
        #expect(try stored(["Last-Modified: Mon, 06 Nov 1995 08:49:37 GMT"]).lifetime == 0)
        #expect(try stored([]).lifetime == 0)
        let modified = "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT"
        #expect(try stored([modified], status: 404).lifetime == 360)
        #expect(try stored([modified, "Cache-Control: private"], status: 403).lifetime == 0)
        #expect(try stored([modified, "Cache-Control: public"], status: 403).lifetime == 360)
    }

    @Test("age counts what other caches kept it, the way here, and the time here (section 4.2.3)")
    func age() {
        func age(_ fields: [String], requested: Int64, stored: Int64, now: Int64) -> Int64 {
            CachedResponse(
                head: head(200, fields), body: [], requestedAt: Self.date + requested, storedAt: Self.date + stored,
                varying: []
            ).age(now: Self.date + now)
        }
        #expect(age([Self.dateField], requested: 0, stored: 0, now: 10) == 10)
        #expect(age([Self.dateField, "Age: 30"], requested: 0, stored: 4, now: 10) == 40)
        // A server clock that is behind makes the response older; a clock that is ahead does not make it younger.
        #expect(age([Self.dateField], requested: 100, stored: 100, now: 110) == 110)
        #expect(age([Self.dateField], requested: -100, stored: -100, now: -90) == 10)
        #expect(age(["Age: soon"], requested: 0, stored: 0, now: 10) == 10)
        #expect(age(["Age: 99999999999999999999"], requested: 0, stored: 0, now: 0) == 1 << 31)
        // A clock that was set back.
        #expect(age([], requested: 0, stored: 0, now: -5) == 0)
    }

    @Test("no time overflows")
    func extremes() {
        for time in [Int64.min, -1, 0, .max] {
            for requested in [Int64.min, 0, .max] {
                for fields in [["Age: 5"], [Self.dateField, "Expires: Fri, 31 Dec 9999 23:59:59 GMT"], []] {
                    let response = CachedResponse(
                        head: head(200, fields), body: [], requestedAt: requested, storedAt: time, varying: [])
                    for now in [Int64.min, 0, .max] {
                        #expect(response.age(now: now) >= 0)
                        #expect(response.lifetime >= 0)
                        let wishes: HTTPFields = [.cacheControl: "max-stale=9999999999999, min-fresh=99999999999"]
                        _ = judgement(wishes).verdict(stored: response, now: now)
                    }
                }
            }
        }
    }

    // MARK: Response directives

    @Test("no-cache is asked about each time, must-revalidate once stale")
    func serverDirectives() throws {
        #expect(try verdict(after: 0, ["Cache-Control: max-age=60, no-cache", "ETag: \"v\""]) == tagged)
        #expect(try verdict(after: 0, ["Cache-Control: max-age=60, no-cache=\"x\"", "ETag: \"v\""]) == tagged)
        let must = ["Cache-Control: max-age=60, must-revalidate", "ETag: \"v\""]
        #expect(try verdict(after: 59, must) == .useStored)
        #expect(try verdict(after: 61, must, request: [.cacheControl: "max-stale"]) == tagged)
    }

    @Test("conditions are the tag, strong or weak, and the date; without either there is nothing to ask by")
    func conditions() throws {
        let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(
            try verdict(after: 1, [modified, "ETag: W/\"v\""])
                == .revalidate([.ifNoneMatch: "W/\"v\"", .ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"]))
        #expect(
            try verdict(after: 1, [modified]) == .revalidate([.ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"]))
        #expect(try verdict(after: 1, []) == .load)
        #expect(try verdict(after: 1, ["ETag: ", "Last-Modified: yesterday"]) == .load)
        #expect(try verdict(after: 1, ["ETag: \"a\u{1}\""]) == .load)
    }

    // MARK: Request directives

    @Test(
        "the request's wishes (section 5.2.1)",
        arguments: [
            ("no-cache", 0, false), ("no-store", 0, false), ("max-age=10", 10, true), ("max-age=10", 11, false),
            ("max-age=0", 0, true), ("max-age=soon", 1, false), ("min-fresh=20", 39, true), ("min-fresh=20", 40, false),
            ("min-fresh=soon", 0, false), ("max-stale", 5000, true), ("max-stale=10", 70, true),
            ("max-stale=10", 71, false), ("max-stale=soon", 61, false), ("max-stale, max-age=10", 61, false),
            ("only-if-cached", 10, true),
        ] as [(String, Int64, Bool)])
    func wishes(wish: String, age: Int64, isUsed: Bool) throws {
        let verdict = try verdict(
            after: age, ["Cache-Control: max-age=60", "ETag: \"v\""], request: [.cacheControl: wish])
        #expect((verdict == .useStored) == isUsed)
    }

    @Test("only-if-cached never asks")
    func onlyIfCached() throws {
        let request: HTTPFields = [.cacheControl: "only-if-cached"]
        #expect(try verdict(after: 61, ["Cache-Control: max-age=60", "ETag: \"v\""], request: request) == .fail)
        #expect(judgement(request).verdict(stored: nil, now: 0) == .fail)
    }

    @Test("Pragma counts where there is no Cache-Control")
    func pragma() throws {
        let pragma = try #require(HTTPField.Name("Pragma"))
        let fields = ["Cache-Control: max-age=60", "ETag: \"v\""]
        #expect(try verdict(after: 0, fields, request: [pragma: "no-cache"]) == tagged)
        #expect(try verdict(after: 0, fields, request: [pragma: "no-cache", .cacheControl: "max-age=5"]) == .useStored)
    }

    @Test("parts, conditions of the caller's own and other methods go to the server")
    func passedOn() throws {
        let response = try stored(["Cache-Control: max-age=60"])
        for name in [HTTPField.Name.range, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange] {
            let judgement = judgement([name: "x"])
            #expect(judgement.verdict(stored: response, now: Self.date) == .load)
            #expect(!judgement.mayStore(head(200, ["Cache-Control: max-age=60"])))
        }
        for method in [HTTPRequest.Method.head, .post, .put, .delete] {
            #expect(judgement(method: method).verdict(stored: response, now: Self.date) == .load)
            #expect(!judgement(method: method).mayStore(head(200, ["Cache-Control: max-age=60"])))
        }
        #expect(
            judgement(method: .post, policy: .returnCacheDataDontLoad).verdict(stored: response, now: 0) == .fail)
    }

    // MARK: Policies

    @Test("policies other than the protocol's look at no age")
    func policies() throws {
        func verdicts(_ policy: RequestCachePolicy, _ fields: [String]) throws -> [CacheEvaluation.Verdict] {
            [
                try verdict(after: 1_000_000, fields, policy: policy),
                judgement(policy: policy).verdict(stored: nil, now: 0),
            ]
        }
        let fields = ["Cache-Control: no-cache, max-age=1", "ETag: \"v\""]
        #expect(try verdicts(.reloadIgnoringLocalCacheData, fields) == [.load, .load])
        #expect(try verdicts(.returnCacheDataElseLoad, fields) == [.useStored, .load])
        #expect(try verdicts(.returnCacheDataDontLoad, fields) == [.useStored, .fail])
        #expect(try verdicts(.reloadRevalidatingCacheData, fields) == [tagged, .load])
        #expect(try verdicts(.reloadRevalidatingCacheData, ["Cache-Control: max-age=60"]) == [.load, .load])
    }

    // MARK: Vary

    @Test("a response is used only for requests like its own (section 4.1)")
    func vary() throws {
        let vary = ["Cache-Control: max-age=60", "Vary: Accept-Language, ACCEPT", "ETag: \"v\""]
        let response = try stored(vary, request: [.acceptLanguage: "de", .userAgent: "a"])
        func verdict(_ fields: HTTPFields, _ policy: RequestCachePolicy = .useProtocolCachePolicy)
            -> CacheEvaluation.Verdict
        {
            judgement(fields, policy: policy).verdict(stored: response, now: Self.date)
        }
        #expect(verdict([.acceptLanguage: "de", .userAgent: "b"]) == .useStored)
        #expect(verdict([.acceptLanguage: " de "]) == .useStored)
        #expect(verdict([.acceptLanguage: "en"]) == .load)
        #expect(verdict([.acceptLanguage: "de", .accept: "*/*"]) == .load)
        #expect(verdict([:]) == .load)
        #expect(verdict([:], .returnCacheDataElseLoad) == .load)
        #expect(verdict([:], .returnCacheDataDontLoad) == .fail)
        #expect(verdict([:], .reloadRevalidatingCacheData) == .load)
    }

    @Test("one person's answer is not given to another, whatever Vary says")
    func authorization() throws {
        let response = try stored(["Cache-Control: max-age=60"], request: [.authorization: "Basic a"])
        #expect(judgement([.authorization: "Basic a"]).verdict(stored: response, now: Self.date) == .useStored)
        #expect(judgement([.authorization: "Basic b"]).verdict(stored: response, now: Self.date) == .load)
        #expect(judgement().verdict(stored: response, now: Self.date) == .load)
    }

    // MARK: Storing

    @Test(
        "what may be stored (section 3)",
        arguments: [
            (200, [], true), (200, ["Cache-Control: no-store"], false), (200, ["Cache-Control: private"], true),
            (200, ["Cache-Control: max-age=5, NO-STORE"], false), (200, ["Vary: *"], false),
            (200, ["Vary: accept, *"], false), (200, ["Vary: b\u{1}ad"], false),
            (206, ["Cache-Control: max-age=5"], false),
            (304, ["Cache-Control: max-age=5"], false), (302, [], false), (302, ["Cache-Control: max-age=5"], true),
            (302, ["Expires: Sun, 06 Nov 1994 08:49:37 GMT"], true), (500, [], false), (404, [], true),
            (100, ["Cache-Control: max-age=5"], false), (500, ["Cache-Control: private"], true),
        ] as [(Int, [String], Bool)])
    func storing(status: Int, fields: [String], isAllowed: Bool) {
        #expect(judgement().mayStore(head(status, fields)) == isAllowed)
        #expect((judgement().stored(head(status, fields), body: [], requestedAt: 0, now: 0) != nil) == isAllowed)
        #expect(!judgement([.cacheControl: "no-store"]).mayStore(head(status, fields)))
    }

    @Test("fields of the connection are not stored (section 3.1)")
    func connectionFields() throws {
        let response = try stored([
            "Connection: close, X-Hop", "X-Hop: 1", "Keep-Alive: 5", "Transfer-Encoding: chunked", "X-Kept: 1",
            "no colon", "Proxy-Authenticate: x",
        ])
        #expect(response.head.headerFields.map(\.name.canonicalName) == ["date", "x-kept"])
    }

    @Test("a Vary without end is not stored")
    func longVary() {
        let names = (0..<100).map { "x-\($0)" }.joined(separator: ",")
        #expect(!judgement().mayStore(head(200, ["Vary: \(names)"])))
    }

    // MARK: 304

    @Test("a 304 renews time and fields, and not what speaks of the body")
    func freshening() throws {
        let response = try stored([
            "Cache-Control: max-age=1", "ETag: \"v\"", "Content-Type: text/plain", "X-Old: 1", "Age: 90",
            "Content-Length: 1",
        ])
        let answer = head(
            304,
            [
                "Date: Sun, 06 Nov 1994 09:49:37 GMT", "Cache-Control: max-age=60", "ETag: \"v\"",
                "Content-Type: text/html", "Content-Length: 0", "Age: 0", "Connection: x-hop", "X-Hop: 1", "X-New: 1",
            ])
        let later = Self.date + 3600
        let renewed = try #require(judgement().freshened(response, by: answer, requestedAt: later, now: later))
        #expect(renewed.head.status == 200)
        #expect(renewed.body == [1])
        #expect(renewed.head.value(of: "content-type") == "text/plain")
        #expect(renewed.head.contentLength == 1)
        #expect(renewed.head.value(of: "x-old") == "1" && renewed.head.value(of: "x-new") == "1")
        #expect(renewed.head.value(of: "x-hop") == nil)
        #expect(renewed.head.values(of: "cache-control") == ["max-age=60"])
        #expect(judgement().verdict(stored: renewed, now: later + 59) == .useStored)
        #expect(judgement().verdict(stored: renewed, now: later + 60) == tagged)
    }

    @Test(
        "a 304 of another version renews nothing",
        arguments: [
            (["ETag: \"other\""], false), (["ETag: W/\"v\""], true), ([], true),
            (["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"], true),
            (["Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT"], false), (["Cache-Control: no-store"], false),
            (["Vary: *"], false),
        ] as [([String], Bool)])
    func otherVersion(fields: [String], isSame: Bool) throws {
        let response = try stored(["ETag: \"v\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"])
        #expect((judgement().freshened(response, by: head(304, fields), requestedAt: 0, now: 0) != nil) == isSame)
        #expect(judgement().freshened(response, by: head(200, fields), requestedAt: 0, now: 0) == nil)
    }

    @Test("a 304 with a tag renews nothing that has none")
    func unaskedTag() throws {
        let response = try stored(["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"])
        #expect(judgement().freshened(response, by: head(304, ["ETag: \"v\""]), requestedAt: 0, now: 0) == nil)
    }

    @Test("methods that change something make what is stored invalid where they succeed (section 4.4)")
    func invalidation() {
        for method in [HTTPRequest.Method.put, .post, .delete, .patch] {
            #expect(judgement(method: method).invalidates(status: 204))
            #expect(judgement(method: method).invalidates(status: 303))
            #expect(!judgement(method: method).invalidates(status: 500))
            #expect(!judgement(method: method).invalidates(status: 404))
        }
        for method in [HTTPRequest.Method.get, .head, .options, .trace] {
            #expect(!judgement(method: method).invalidates(status: 200))
        }
        #expect(HTTPRequest.Method("PURGE").map { judgement(method: $0).invalidates(status: 200) } == true)
    }
}
