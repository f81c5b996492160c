import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("What an answer means for a part file")
struct ResponseEvaluatorTests {
    enum Outcome: Sendable, Equatable {
        case accept(offset: Int64, length: Int64?, total: Int64?)
        case restart(length: Int64?)
        case complete, askAgain, decode, unconfirmed
        case fail(String, Int?)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var askedFrom: Int64? = 100
        var have: Int64 = 100
        var tag: String? = "\"v1\""
        var total: Int64? = 200
        var path = "/a.iso"
        var type: String? = "application/zip"
        var status: Int
        var fields: [String]
        var outcome: Outcome

        init(
            _ description: String, _ status: Int, _ fields: [String], _ outcome: Outcome,
            _ change: (inout Row) -> Void = { _ in }
        ) {
            testDescription = description
            (self.status, self.fields, self.outcome) = (status, fields, outcome)
            change(&self)
        }

        static func fresh(_ row: inout Row) {
            row.askedFrom = nil
            row.have = 0
            row.tag = nil
            row.total = nil
        }
    }

    private static let good = ["Content-Range: bytes 100-199/200", "Content-Length: 100", "ETag: \"v1\""]
    private static let accepted = Outcome.accept(offset: 100, length: 100, total: 200)

    static let rows: [Row] = [
        // 206 responses to the requested range.
        Row("206 of the rest", 206, good, accepted),
        Row("206, the unit in capitals", 206, ["Content-Range: BYTES 100-199/200", "ETag: \"v1\""], accepted),
        Row("206 without a tag", 206, ["Content-Range: bytes 100-199/200"], accepted),
        Row("206 with two tags, ours first", 206, good + ["ETag: \"v2\""], .askAgain),
        Row("206 with our tag twice", 206, good + ["ETag: \"v1\""], accepted),
        Row("206, identity coding", 206, good + ["Content-Encoding: identity"], accepted),
        Row("206, total not told", 206, ["Content-Range: bytes 100-199/*"], accepted),
        Row(
            "206 that begins earlier", 206, ["Content-Range: bytes 50-199/200"],
            .accept(offset: 50, length: 150, total: 200)),
        Row(
            "206 that is shorter", 206, ["Content-Range: bytes 100-149/200"],
            .accept(offset: 100, length: 50, total: 200)),
        Row(
            "206 of the whole file", 206, ["Content-Range: bytes 0-199/200"],
            .accept(offset: 0, length: 200, total: 200)),
        // 206 responses that must be rejected.
        Row("206 that begins later", 206, ["Content-Range: bytes 101-199/200"], .askAgain),
        Row("206 without Content-Range", 206, ["Content-Length: 100"], .askAgain),
        Row("206 with an invalid Content-Range", 206, ["Content-Range: bytes 100-99/200"], .askAgain),
        Row("206 with another total", 206, ["Content-Range: bytes 100-199/201"], .askAgain),
        Row("206 in another unit", 206, ["Content-Range: lines 100-199/200"], .askAgain),
        Row(
            "206 in several parts", 206, good + ["Content-Type: Multipart/ByteRanges; boundary=x"], .askAgain),
        Row("206 with two ranges that contradict", 206, good + ["Content-Range: bytes 0-99/200"], .askAgain),
        Row("200 with two ranges that contradict", 200, good + ["Content-Range: bytes 0-99/200"], .askAgain),
        Row("206 with one range twice", 206, good + ["Content-Range: bytes 100-199/200"], accepted),
        Row("206 with another tag", 206, ["Content-Range: bytes 100-199/200", "ETag: \"v2\""], .askAgain),
        Row("206 with the tag turned weak", 206, ["Content-Range: bytes 100-199/200", "ETag: W/\"v1\""], .askAgain),
        Row("206 with a coding", 206, good + ["Content-Encoding: gzip"], .askAgain),
        Row(
            "206 whose length contradicts", 206, ["Content-Range: bytes 100-199/200", "Content-Length: 99"], .askAgain),
        Row("206 past every number", 206, ["Content-Range: bytes 0-9223372036854775807/*"], .askAgain),
        Row(
            "206 of the whole that was asked for", 206, ["Content-Range: bytes 0-199/200", "Content-Length: 200"],
            .restart(length: 200), Row.fresh),
        Row(
            "206 of half to a request for the whole", 206, ["Content-Range: bytes 0-99/200"], .askAgain, Row.fresh),
        Row(
            "206 of the end to a request for the whole", 206, ["Content-Range: bytes 100-199/200"], .askAgain,
            Row.fresh),
        Row(
            "206 of the whole, its size not told", 206, ["Content-Range: bytes 0-199/*"], .askAgain, Row.fresh),
        Row(
            "206 of the whole with another length", 206, ["Content-Range: bytes 0-199/200", "Content-Length: 199"],
            .askAgain, Row.fresh),
        Row(
            "206 of the whole that proves nothing, with bytes here", 206, ["Content-Range: bytes 0-299/300"],
            .unconfirmed
        ) {
            $0.askedFrom = nil
        },
        // 200 responses.
        Row(
            "200 to a range", 200, ["Content-Length: 300", "ETag: \"v2\"", "Content-Type: Application/Zip; x=y"],
            .restart(length: 300)),
        Row(
            "200 to a range, a strong date", 200,
            [
                "Content-Type: application/zip", "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT",
                "Date: Fri, 01 Jan 2021 00:00:00 GMT",
            ], .restart(length: nil)),
        Row("200 to a range, the known tag", 200, ["ETag: \"v1\""], .restart(length: 200)),
        Row("200 to a range, nothing told", 200, [], .unconfirmed),
        Row("200 to a range, no validator", 200, ["Content-Type: application/zip"], .unconfirmed),
        Row("200 to a range, a weak tag", 200, ["Content-Type: application/zip", "ETag: W/\"v2\""], .unconfirmed),
        Row("200 to a range, a page", 200, ["Content-Type: text/html", "ETag: \"v2\""], .unconfirmed),
        Row("200 to a range, no type", 200, ["ETag: \"v2\""], .unconfirmed),
        Row("200 to a range, neither had a type", 200, ["ETag: \"v2\""], .restart(length: nil)) { $0.type = nil },
        Row("200 afresh", 200, ["Content-Length: 7"], .restart(length: 7), Row.fresh),
        Row("203 afresh", 203, ["Content-Length: 7"], .restart(length: 7), Row.fresh),
        Row("200 with a length that is no number", 200, ["Content-Length: -7"], .fail("truncated", nil), Row.fresh),
        Row("200 coded, to a range", 200, ["Content-Encoding: gzip"], .askAgain),
        Row("200 coded, afresh", 200, ["Content-Encoding: gzip"], .decode, Row.fresh),
        Row("200 coded by an old name", 200, ["Content-Encoding: X-GZip"], .decode, Row.fresh),
        Row(
            "200 under words that name no coding", 200, ["Content-Encoding: UTF-8", "Content-Length: 9"],
            .restart(length: 9), Row.fresh),
        Row(
            "200 coded by an unknown coding outside", 200, ["Content-Encoding: gzip, aws-chunked"],
            .restart(length: nil), Row.fresh),
        Row("200 coded by a known coding outside", 200, ["Content-Encoding: aws-chunked, gzip"], .decode, Row.fresh),
        Row("200 of identity twice", 200, ["Content-Encoding: identity, Identity"], .restart(length: nil), Row.fresh),
        Row(
            "200 coded, of a suggested .gz", 200, ["Content-Encoding: gzip", "Content-Disposition: filename=a.gz"],
            .restart(length: nil), Row.fresh),
        Row("206 under words that name no coding", 206, good + ["Content-Encoding: none"], accepted),
        Row("206 coded, of a .gz", 206, good + ["Content-Encoding: gzip"], accepted) { $0.path = "/a.tgz" },
        Row("200 coded, of a .gz", 200, ["Content-Encoding: gzip", "Content-Length: 9"], .restart(length: 9)) {
            Row.fresh(&$0)
            $0.path = "/a.tar.GZ"
        },
        Row("200 with a Content-Range that fits", 200, good, accepted),
        Row(
            "200 with a Content-Range that does not fit", 200,
            ["Content-Range: bytes 100-198/200", "Content-Length: 100"], .askAgain),
        Row("200 with a fitting Content-Range of another version", 200, good.dropLast() + ["ETag: \"v2\""], .askAgain),
        Row("204", 204, [], .fail("http", 204), Row.fresh),
        Row("205 to a range", 205, [], .fail("truncated", nil)),
        Row(
            "a length past all numbers", 200, ["Content-Length: 99999999999999999999"], .fail("truncated", nil),
            Row.fresh),
        // 416 responses.
        Row("416 and all is there", 416, ["Content-Range: bytes */100", "ETag: \"v1\""], .complete) { $0.total = 100 },
        Row(
            "416 and all is there, size unknown before", 416, ["Content-Range: bytes */100", "ETag: \"v1\""], .askAgain
        ) { $0.total = nil },
        Row(
            "the same tag and another length", 200, ["Content-Length: 300", "ETag: \"v1\""], .fail("truncated", nil)),
        Row("the same tag and no byte", 200, ["Content-Length: 0", "ETag: \"v1\""], .fail("truncated", nil)),
        Row(
            "another tag and another length", 200,
            ["Content-Length: 300", "ETag: \"v2\"", "Content-Type: application/zip"], .restart(length: 300)),
        Row("416 without the tag", 416, ["Content-Range: bytes */100"], .askAgain) { $0.total = 100 },
        Row("416 with another tag", 416, ["Content-Range: bytes */100", "ETag: \"v2\""], .askAgain) { $0.total = 100 },
        Row("416 with another size", 416, ["Content-Range: bytes */90", "ETag: \"v1\""], .askAgain) { $0.total = nil },
        Row("416 without a size", 416, ["ETag: \"v1\""], .askAgain) { $0.total = 100 },
        Row("416 that was not asked for", 416, [], .fail("http", 416), Row.fresh),
        // Other status codes.
        Row("412", 412, [], .askAgain),
        Row("412 that was not asked for", 412, [], .fail("http", 412), Row.fresh),
        Row("304", 304, [], .fail("http", 304)),
        Row("404", 404, ["Content-Length: 9"], .fail("http", 404)),
        Row("503", 503, [], .fail("http", 503)),
    ]

    @Test("F40: a 200 whose Content-Range fits and that names no version is held to an overlap, as a 206 is")
    func silentPartAs200() {
        for status in [200, 206] {
            var judgement = ResponseEvaluator(
                askedFrom: 100, have: 100, validator: ResourceValidator(entityTag: "\"v1\""), isConditional: true,
                total: 200, pathSuffix: "/a")
            let silent = head(status, ["Content-Range: bytes 100-199/200", "Content-Length: 100"])
            #expect(judgement.evaluate(silent, now: 0) == .askUnconditionally, "\(status)")
            judgement.isConditional = false
            #expect(judgement.evaluate(silent, now: 0) == .accept(offset: 100, length: 100, total: 200), "\(status)")
        }
    }

    @Test(
        "the whole with the same tag is asked for in part once more, without the condition; then it is as long as known"
    )
    func sameTag() {
        var judgement = ResponseEvaluator(
            askedFrom: 100, have: 100, validator: ResourceValidator(entityTag: "\"v1\""), isConditional: true,
            total: 200, pathSuffix: "/a")
        let same = head(200, ["ETag: \"v1\""])
        #expect(judgement.evaluate(same, now: 0) == .askUnconditionally)
        #expect(judgement.evaluate(head(200, ["ETag: \"v2\""]), now: 0) == .restart(length: nil))
        judgement.isConditional = false
        #expect(judgement.evaluate(same, now: 0) == .restart(length: 200))
        judgement.isVouched = false
        #expect(judgement.evaluate(same, now: 0) == .restart(length: nil))
    }

    @Test("who says that nothing is left where nobody knew the end is asked for the last bytes")
    func unknownEnd() {
        var judgement = ResponseEvaluator(
            askedFrom: 100, have: 100, validator: ResourceValidator(entityTag: "\"v1\""), isConditional: true,
            pathSuffix: "/a")
        let nothing = head(416, ["Content-Range: bytes */100", "ETag: \"v1\""])
        #expect(judgement.evaluate(nothing, now: 0) == .confirmEnd)
        #expect(judgement.evaluate(head(416, ["Content-Range: bytes */100"]), now: 0) == .confirmEnd)
        judgement.isConfirming = true
        #expect(judgement.evaluate(nothing, now: 0) == .complete)
        judgement.isConfirming = false
        judgement.total = 100
        #expect(judgement.evaluate(nothing, now: 0) == .complete)
    }

    @Test("a part that says nothing of its version is not taken on the strength of If-Range alone")
    func silentPart() {
        var judgement = ResponseEvaluator(
            askedFrom: 100, have: 100, validator: ResourceValidator(entityTag: "\"v1\"", lastModified: "x"),
            isConditional: true, total: 200, pathSuffix: "/a")
        let accepted = ResponseEvaluator.Verdict.accept(offset: 100, length: 100, total: 200)
        let range = "Content-Range: bytes 100-199/200"
        #expect(judgement.evaluate(head(206, [range]), now: 0) == .askUnconditionally)
        #expect(judgement.evaluate(head(206, [range, "Last-Modified: x"]), now: 0) == accepted)
        #expect(judgement.evaluate(head(206, [range, "ETag: \"v1\""]), now: 0) == accepted)
        // Without a condition in the request an overlap is compared instead.
        judgement.isConditional = false
        #expect(judgement.evaluate(head(206, [range]), now: 0) == accepted)
        // For another URL that is not enough.
        judgement.isVouched = false
        #expect(
            judgement.evaluate(head(206, [range]), now: 0)
                == .askAgain(reason: "nothing confirms that the file on the server is the same"))
        #expect(judgement.evaluate(head(206, [range, "Last-Modified: x"]), now: 0) == accepted)
    }

    @Test("F71: two answers that agree, far enough apart, show another version together")
    func agreement() {
        let page = ["Content-Type: text/html", "Content-Length: 26"]
        func verdict(
            _ fields: [String], after earlier: [String], by elapsed: Int64, length: Int64? = 26
        ) -> ResponseEvaluator.Verdict {
            var present = ResponseEvaluator.Present(
                mediaType: "application/zip", requestedAt: 50_000, confirmationDelay: 1_000)
            present.unconfirmed = UnconfirmedVersion(head(200, earlier), length: length, requestedAt: 50_000 - elapsed)
            return ResponseEvaluator(
                askedFrom: 100, have: 100, validator: ResourceValidator(entityTag: "\"v1\""), total: 200,
                present: present, pathSuffix: "/a"
            ).evaluate(head(200, fields), now: 50)
        }
        #expect(verdict(page, after: page, by: 1_000) == .restart(length: 26))
        // Too early, the first answer keeps its time; the clock may have been set back.
        for (elapsed, known) in [(999, 49_001), (0, 50_000), (-1, 50_000)] as [(Int64, Int64)] {
            let expected = UnconfirmedVersion(head(200, page), length: 26, requestedAt: known)
            #expect(verdict(page, after: page, by: elapsed) == .unconfirmed(expected))
        }
        // Another answer begins anew.
        let longer = ["Content-Type: text/html", "Content-Length: 27"]
        let begun = UnconfirmedVersion(head(200, longer), length: 27, requestedAt: 50_000)
        #expect(verdict(longer, after: page, by: 9_000) == .unconfirmed(begun))
        // Bodies of unknown length agree by validator, or where they have the type of the part.
        #expect(verdict(["ETag: W/\"2\""], after: ["ETag: W/\"2\""], by: 9_000, length: nil) == .restart(length: nil))
        let archive = ["Content-Type: application/zip"]
        #expect(verdict(archive, after: archive, by: 9_000, length: nil) == .restart(length: nil))
        let chunked = ["Content-Type: text/html"]
        #expect(
            verdict(chunked, after: chunked, by: 9_000, length: nil)
                == .unconfirmed(UnconfirmedVersion(head(200, chunked), length: nil, requestedAt: 50_000)))
    }

    @Test("F71: where nothing tells a response from the part, it may replace it at once")
    func indistinct() {
        func verdict(
            _ fields: [String], validator: ResourceValidator? = nil, total: Int64? = 200
        ) -> ResponseEvaluator.Verdict {
            let present = ResponseEvaluator.Present(
                mediaType: "application/zip", requestedAt: 50_000, confirmationDelay: 1_000)
            return ResponseEvaluator(
                askedFrom: 100, have: 100, validator: validator, total: total, present: present, pathSuffix: "/a"
            ).evaluate(head(200, fields), now: 50)
        }
        func isDoubted(_ verdict: ResponseEvaluator.Verdict) -> Bool {
            if case .unconfirmed = verdict { true } else { false }
        }
        let same = ["Content-Type: application/zip", "Content-Length: 200"]
        #expect(verdict(same) == .restart(length: 200))
        #expect(verdict(["Content-Type: application/zip"], total: nil) == .restart(length: nil))
        #expect(verdict(same, validator: ResourceValidator(entityTag: "W/\"1\"")) == .restart(length: 200))
        #expect(isDoubted(verdict(same, validator: ResourceValidator(entityTag: "\"1\""))))
        let other = ResourceValidator(entityTag: "W/\"1\"")
        #expect(isDoubted(verdict(same + ["ETag: W/\"2\""], validator: other)))
        #expect(isDoubted(verdict(["Content-Type: application/zip", "Content-Length: 201"])))
        #expect(isDoubted(verdict(["Content-Type: text/html", "Content-Length: 200"])))
    }

    @Test("a refusal for want of a login names the schemes where none is supported")
    func unsupportedLogins() {
        func words(_ status: Int, _ fields: [String]) -> String {
            ResponseEvaluator.failure(head(status, fields), now: 0, sentCredential: .password).message
        }
        #expect(
            words(401, ["WWW-Authenticate: NTLM", "WWW-Authenticate: Negotiate"])
                == "the server accepts only logins that are not supported: negotiate, ntlm (401)")
        #expect(
            words(401, ["WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\""])
                == "the server accepts only logins that are not supported: digest of another kind (401)")
        #expect(
            words(407, ["Proxy-Authenticate: Negotiate"])
                == "the proxy accepts only logins that are not supported: negotiate (407)")
        for fields in [[], ["WWW-Authenticate: NTLM", "WWW-Authenticate: Basic realm=\"r\""]] {
            #expect(words(401, fields) == "the server rejected the user name and password (401)")
        }
    }

    @Test("a refused method of an upload is named")
    func refusedMethods() {
        #expect(ResponseEvaluator.words(for: 501, of: .put) == "the server does not support PUT (501)")
        #expect(ResponseEvaluator.words(for: 405, of: .post) == "the server does not allow POST at this URL (405)")
        #expect(ResponseEvaluator.words(for: 501) == "the server failed (501)")
    }

    @Test("a range under another status is no file")
    func rangeAs200() {
        let evaluator = ResponseEvaluator(askedFrom: nil, have: 0, pathSuffix: "/a")
        let range = "Content-Range: bytes 0-99/300"
        let refused = evaluator.evaluate(head(200, [range, "Content-Length: 100"]), now: 0)
        #expect(refused == .askAgain(reason: "the server sent a range although the whole file was requested"))
        let whole = "Content-Range: bytes 0-299/300"
        #expect(evaluator.evaluate(head(200, [whole, "Content-Length: 300"]), now: 0) == .restart(length: 300))
        // A field without a meaning under this status.
        #expect(evaluator.evaluate(head(200, [range, "Content-Length: 300"]), now: 0) == .restart(length: 300))
    }

    @Test("one row for each answer", arguments: rows)
    func table(row: Row) {
        let judgement = ResponseEvaluator(
            askedFrom: row.askedFrom, have: row.have,
            validator: row.have > 0 ? ResourceValidator(entityTag: row.tag) : nil, total: row.total,
            present: row.have > 0
                ? ResponseEvaluator.Present(mediaType: row.type, requestedAt: 0, confirmationDelay: 1_000) : nil,
            pathSuffix: row.path)
        let outcome: Outcome =
            switch judgement.evaluate(head(row.status, row.fields), now: 0) {
            case .accept(let offset, let length, let total): .accept(offset: offset, length: length, total: total)
            case .restart(let length): .restart(length: length)
            case .complete: .complete
            case .decode: .decode
            case .unconfirmed: .unconfirmed
            case .askAgain, .askUnconditionally, .confirmEnd: .askAgain
            case .fail(let error): .fail(error.code.rawValue, error.httpStatus)
            }
        #expect(outcome == row.outcome)
    }

    @Test("a refusal brings the time that the server wants to be left alone")
    func retryAfter() {
        let judgement = ResponseEvaluator(have: 0, pathSuffix: "/")
        guard case .fail(let error) = judgement.evaluate(head(503, ["Retry-After: 7"]), now: 0) else {
            Issue.record("a 503 is a failure")
            return
        }
        #expect(error.retryAfter == 7)
    }
}
