import Glibc
import HTTPTypes
import TaskModel

@testable import HTTPCaching
@testable import HTTPMessages

/// The libFuzzer targets: the parsers of data from servers, files and the kernel, each with the invariants of its
/// results. They are compiled into one program directly from the sources; see `fuzz.sh`.
///
/// A new target needs a function here and a directory of seeds with the same name in `Corpus`.
private let targets: [String: @Sendable ([UInt8]) -> Void] = [
    "aria2": aria2,
    "cache": cache,
    "checksum-list": checksumList,
    "content-disposition": contentDisposition,
    "content-range": contentRange,
    "cookie": cookie,
    "head": head,
    "link": link,
    "metalink": metalink,
    "netlink": netlink,
    "netrc": netrc,
    "repr-digest": reprDigest,
    "retry-after": retryAfter,
    "set-cookie": setCookie,
    "www-authenticate": wwwAuthenticate,
]

private let target: @Sendable ([UInt8]) -> Void = {
    guard let name = getenv("FUZZ_TARGET").map({ String(cString: $0) }), let target = targets[name] else {
        fatalError("FUZZ_TARGET is to name one of \(targets.keys.sorted())")
    }
    return target
}()

@c(LLVMFuzzerTestOneInput)
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    target(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

/// Returns a response with one header field.
private func answer(_ name: String, _ value: [UInt8]) -> ResponseHead {
    let line = Array("\(name): ".utf8) + value.filter { $0 != 0x0A } + [0x0D, 0x0A]
    return ResponseHead(status: 200, version: "1.1", lines: line)
}

private func isDigits(_ text: String) -> Bool { text.utf8.allSatisfy { (0x30...0x39).contains($0) } }

// MARK: Heads

/// Fuzzes the parser of response heads.
///
/// Input: header lines as libcurl delivers them.
private func head(_ bytes: [UInt8]) {
    var parser = ResponseHeadParser()
    var rest = bytes[...]
    while !rest.isEmpty {
        let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
        if case .complete(let head) = rest[..<end].withUnsafeBytes({ parser.add($0) }) { look(at: head) }
        rest = rest[end...]
    }
}

private func look(at head: ResponseHead) {
    precondition((200...999).contains(head.status))
    precondition(head.contentLength ?? 0 >= 0)
    precondition(head.contentCoding != "identity")
    precondition(head.retryAfter(now: 1_700_000_000) ?? 0 >= 0)
    precondition(head.value(of: "content-length") == head.values(of: "Content-Length").first)
    precondition(head.value(of: "etag") == head.values(of: "etag").first)
    // The removed field is gone, and the other fields are unchanged.
    let removed = head.removing(["etag"])
    precondition(removed.value(of: "etag") == nil)
    precondition(removed.values(of: "link") == head.values(of: "link"))
    precondition(head.updated(by: head, except: []).values(of: "etag") == head.values(of: "etag"))
    if let ifRange = head.validator.ifRange { precondition(!ifRange.utf8.starts(with: "W/".utf8)) }
    _ = (head.headerFields.count, head.suggestedFileName, head.links, head.lastModified)
    _ = head.value(of: "content-range").map(ContentRange.init)
}

// MARK: Fields

private func reprDigest(_ bytes: [UInt8]) {
    guard let digest = answer("Repr-Digest", bytes).representationDigest ?? answer("Digest", bytes).representationDigest
    else { return }
    precondition(digest.hex.utf8.count == 2 * digest.algorithm.length)
}

private func contentDisposition(_ bytes: [UInt8]) {
    if let name = answer("Content-Disposition", bytes).suggestedFileName {
        precondition(name.utf8.count <= bytes.count * 3)
    }
}

private func contentRange(_ bytes: [UInt8]) {
    guard let range = ContentRange(String(decoding: bytes, as: UTF8.self)) else { return }
    precondition(range.total ?? 0 >= 0 && range.total ?? 0 < .max)
    if let bounds = range.bounds {
        precondition(bounds.lowerBound >= 0 && bounds.upperBound < range.total ?? .max)
        _ = bounds.upperBound - bounds.lowerBound + 1
    } else {
        precondition(range.total != nil)
    }
}

private func link(_ bytes: [UInt8]) {
    let links = LinkHeader.parse(bytes)
    precondition(links.count <= LinkHeader.maximumLinks)
    for link in links {
        precondition(link.target.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F })
        precondition(link.parameters.count <= LinkHeader.maximumParameters)
        precondition(link.parameters.allSatisfy { !$0.name.isEmpty })
        precondition(link.relations.allSatisfy { !$0.isEmpty })
    }
}

/// Fuzzes `Retry-After` and HTTP dates.
private func retryAfter(_ bytes: [UInt8]) {
    let answer = answer("Retry-After", bytes)
    let seconds = answer.retryAfter(now: 1_700_000_000)
    precondition(seconds ?? 0 >= 0)
    let text = answer.value(of: "retry-after") ?? ""
    let date = HTTPDate.parse(text)
    // The bounds are the years 1583 and 9999, up to a day more for the zone.
    let years: ClosedRange<Int64> = -12_212_553_600...253_402_300_799
    if let date {
        precondition((years.lowerBound - 86_400...years.upperBound + 86_400).contains(date))
        precondition(!years.contains(date) || HTTPDate.parse(HTTPDate.text(date)) == date)
    }
    precondition(seconds == nil || date != nil || isDigits(text.filter { $0 != "." }))
}

/// Fuzzes `WWW-Authenticate` and its parser `AuthenticationOffer`.
private func wwwAuthenticate(_ bytes: [UInt8]) {
    let head = answer("WWW-Authenticate", bytes)
    for offer in head.authenticationOffers {
        precondition(!offer.scheme.isEmpty && offer.parameters.count <= AuthenticationOffer.maximumParameters)
    }
    // Parse the input as one line, without the processing of a response head.
    precondition(
        AuthenticationOffer.parse(String(decoding: bytes, as: UTF8.self)).count <= AuthenticationOffer.maximumOffers)
}

private func setCookie(_ bytes: [UInt8]) {
    for text in answer("Set-Cookie", bytes).values(of: "set-cookie") {
        guard let field = SetCookie(text) else { continue }
        precondition(!field.name.isEmpty && !field.name.utf8.contains { $0 == 0x3B || $0 == 0x3D })
        precondition(!field.value.utf8.contains(0x3B) && field.maxAge ?? 0 >= 0 && field.domain != "")
        precondition(field.name.utf8.count + field.value.utf8.count <= SetCookie.maximumLength)
        let origin = CookieOrigin(host: field.domain ?? "", path: field.value, isSecure: field.isSecure)
        precondition(origin.path.utf8.starts(with: origin.defaultPath.utf8))
        let cookie = Cookie(
            name: field.name, value: field.value, domain: origin.host, path: field.path ?? origin.defaultPath)
        guard let cookie else { continue }
        precondition(Cookie(netscape: cookie.netscapeLine) == cookie)
        precondition(origin.host.utf8.first == 0x2E || cookie.matches(host: origin.host))
        precondition(field.path != nil || cookie.matches(path: origin.path))
    }
}

// MARK: Files and the kernel

private func cookie(_ bytes: [UInt8]) {
    guard let cookie = Cookie(netscape: String(decoding: bytes, as: UTF8.self)) else { return }
    let line = cookie.netscapeLine
    precondition(line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    precondition(line.utf8.count { $0 == 0x09 } == 6)
    precondition(Cookie(netscape: line) == cookie)
    precondition(cookie.matches(host: cookie.domain) && cookie.matches(path: cookie.path))
    _ = cookie.matches(host: cookie.name)
    _ = cookie.matches(path: cookie.value)
}

private func netlink(_ bytes: [UInt8]) {
    var picture = NetworkPicture()
    for message in NetlinkMessage.parse(bytes) {
        if case .route(let route) = message.content {
            precondition(route.hops.count <= bytes.count)
            precondition(route.destination.count <= 16)
        }
        picture.add(message.content)
    }
    precondition(picture.paths.count <= bytes.count)
    precondition(picture == picture)
}

private func checksumList(_ bytes: [UInt8]) {
    guard let list = try? ChecksumList(parsing: bytes, file: "f") else { return }
    for name in ["a", "x/a", "", "SHA256SUMS"] {
        guard let checksum = try? list.checksum(for: name) else { continue }
        precondition(checksum.hex.utf8.count == 2 * checksum.algorithm.byteCount)
        // gpg divides a digest by blanks and line ends, and UTF-16 by zeros.
        let text = String(decoding: bytes.filter { $0 > 0x20 }, as: UTF8.self)
        precondition(text.lowercased().contains(checksum.hex))
    }
}

/// Fuzzes netrc files. No part of the text is in an error, and no value has a control character.
private func netrc(_ bytes: [UInt8]) {
    guard let netrc = try? Netrc(parsing: String(decoding: bytes, as: UTF8.self)) else { return }
    precondition(!netrc.machines.isEmpty || netrc.fallback != nil)
    for (machine, login) in netrc.machines {
        for text in [machine, login.user, login.password].compactMap(\.self) {
            precondition(text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        }
    }
}

/// Fuzzes aria2 input files. The resulting tasks must be valid, and their names must not leave the directory.
private func aria2(_ bytes: [UInt8]) {
    let lines = bytes.count { $0 == 0x0A } + 1
    let input: Aria2Input
    do {
        input = try Aria2Input(parsing: bytes, file: "f")
    } catch {
        precondition((1...lines).contains(error.line) && (1...(bytes.count + 1)).contains(error.column))
        precondition(!error.message.isEmpty)
        return
    }
    precondition(input.notes.count <= 100 && input.notes.allSatisfy { (1...lines).contains($0.line) })
    var last = 0
    for entry in input.entries {
        precondition(entry.line > last)
        last = entry.line
        guard (try? entry.specification.check()) != nil else { fatalError("an entry makes no task") }
    }
}

private func metalink(_ bytes: [UInt8]) {
    let files: [Metalink.File]
    do {
        files = try Metalink(parsing: bytes, file: "f").files
    } catch {
        let lines = bytes.count { $0 == 0x0A } + 1
        precondition((1...lines).contains(error.line) && (1...(bytes.count + 1)).contains(error.column))
        precondition(!error.message.isEmpty)
        return
    }
    var last = (line: 1, column: 0)
    for file in files {
        precondition((file.line, file.column) > last)
        last = (file.line, file.column)
        let path = (file.directory.map { $0 + "/" } ?? "") + file.output
        precondition(!path.utf8.starts(with: "/".utf8) && path.utf8.count <= bytes.count * 4)
        for segment in path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            precondition(!segment.isEmpty && segment.first != UInt8(ascii: "."))
        }
        guard (try? file.specification.check()) != nil else { fatalError("a file makes no task") }
    }
}

// MARK: The cache

/// Fuzzes the HTTP cache.
///
/// Input: the field lines of a response, NUL, the request's Cache-Control, NUL, the field lines of a 304 response.
private func cache(_ bytes: [UInt8]) {
    let parts = bytes.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
    func lines(_ index: Int) -> [UInt8] { index < parts.count ? Array(parts[index]) : [] }
    let time: Int64 = 784_111_777
    let wishes = String(decoding: lines(1), as: UTF8.self)
    let judgement = CacheEvaluation(method: .get, fields: [.cacheControl: wishes, .accept: "*/*"])
    let answer = ResponseHead(status: 200, version: "1.1", lines: lines(0))
    let mayStore = judgement.mayStore(answer)
    guard let stored = judgement.stored(answer, body: [], requestedAt: time, now: time + 1) else {
        precondition(!mayStore)
        return
    }
    precondition(mayStore && stored.matches(judgement.fields))
    precondition(stored.lifetime >= 0 && stored.age(now: time) >= 0)
    // A response that was not usable must not become usable with age.
    var isUsed = true
    for age in [0, 1, 60, 86_400, 1 << 40] as [Int64] {
        let verdict = judgement.verdict(stored: stored, now: time + 1 + age)
        precondition(isUsed || verdict != .useStored)
        isUsed = verdict == .useStored
    }
    let notModified = ResponseHead(status: 304, version: "1.1", lines: lines(2))
    if let renewed = judgement.freshened(stored, by: notModified, requestedAt: time, now: time + 5) {
        precondition(renewed.matches(judgement.fields) && renewed.head.status == 200)
    }
}
