import Curl
import Glibc
import HTTPTypes

/// A request as a command line for curl(1) in a POSIX shell (sh). The command sends what the engine sends.
struct CurlCommandLine {
    let request: TransferRequest
    let configuration: SessionConfiguration
    let body: Body
    /// Field lines that the engine adds for this kind of request.
    let engineFields: [String]
    /// The request's own credential for challenges.
    let credential: Credential?
    /// Whether secrets are part of the command. Otherwise each is replaced by `…`.
    let includesSecrets: Bool

    /// The body of the request.
    enum Body {
        case body(RequestBody)
        case form(FormDescription)
        /// The body is not part of the command, whatever it is.
        case omitted(isUpload: Bool)
    }

    /// A body of more bytes is not part of the command, since the system limits the length of an argument.
    static let longestBody = 64 << 10

    /// The parts of a command, in their order.
    private struct Parts {
        /// A command that writes the body to curl's standard input.
        var source = ""
        var words = ["curl"]
        /// Explanations of what the command does not contain.
        var notes: [String] = []

        var text: String {
            let command = (source.isEmpty ? "" : source + " | ") + words.joined(separator: " ")
            return command + (notes.isEmpty ? "" : "  # " + notes.joined(separator: "; "))
        }
    }

    /// The command, on one line unless the body or a field contains line ends.
    var text: String {
        var parts = Parts()
        if RemoteScheme(of: request.url) != nil { addFileServer(to: &parts) } else { addHTTP(to: &parts) }
        if let options = proxy, let proxy = options.url {
            if options.hasLogin, options.readsRequests { parts.words.append("--proxy-anyauth") }
            let shown = includesSecrets ? proxy : URLRedaction.redact(proxy, hidesQuery: false)
            parts.words += ["--proxy", Self.quoted(shown)]
        } else {
            // curl(1) reads proxies from the environment, and the engine does not.
            parts.words += ["--noproxy", "'*'"]
        }
        addTrust(to: &parts)
        let url = (try? CurlURL(request.url))?.text ?? request.url
        let shown = includesSecrets ? url : URLRedaction.redact(url)
        if shown.contains(where: { "[]{}".contains($0) }) { parts.words.append("--globoff") }
        // An argument that begins with a hyphen would be an option.
        if shown.hasPrefix("-") { parts.words.append("--url") }
        parts.words.append(Self.quoted(shown))
        return parts.text
    }

    /// The proxy of the request; `nil` for an invalid URL.
    private var proxy: ProxyOptions? {
        (try? CurlURL(request.url)).map { ProxyOptions(configuration: configuration, request: request, to: $0) }
    }

    // MARK: HTTP

    private func addHTTP(to parts: inout Parts) {
        parts.words.append("--include")
        let sendsBody = addBody(to: &parts)
        let method = request.method.rawValue
        switch method {
        case "HEAD": parts.words.append("--head")
        case "GET" where !sendsBody: break
        default: parts.words += ["--request", Self.quoted(method)]
        }
        addVersion(to: &parts)
        addFields(sendsBody: sendsBody, to: &parts)
        addCookies(to: &parts)
        addCredential(to: &parts)
        if request.redirects == .follow {
            parts.words += ["--location", "--max-redirs", String(configuration.maximumRedirects)]
        }
    }

    private func addVersion(to parts: inout Parts) {
        let version = (try? CurlURL(request.url)).map { configuration.httpVersion(of: request, at: $0) }
        switch version ?? configuration.httpVersion {
        case .http1: parts.words.append("--http1.1")
        case .http2: parts.words.append("--http2")
        case .http2PriorKnowledge: parts.words.append("--http2-prior-knowledge")
        case .http3: parts.words.append(CurlLibrary.hasHTTP3 ? "--http3" : "--http2")
        }
    }

    private func addFields(sendsBody: Bool, to parts: inout Parts) {
        var lines = SentFields.lines(of: request, configuration, engineFields: engineFields, isAuthorized: false)
        let fields = SentFields.fields(lines)
        if sendsBody, fields[.contentType] == nil {
            // curl(1) would add the type of a form.
            lines.append(request.method == .post ? "Content-Type: application/octet-stream" : "Content-Type:")
        }
        let isRead = proxy?.readsRequests == true && request.url.lowercased().hasPrefix("http:")
        let valid = lines.filter(SentFields.isValid)
        if valid.count < lines.count { parts.notes.append("invalid header lines of the session are left out") }
        for line in valid where isRead || !SentFields.isForProxy(line) {
            parts.words += ["--header", Self.quoted(includesSecrets ? line : Self.redacted(line))]
        }
        if !engineFields.contains(where: { $0.hasPrefix("Accept-Encoding:") }), CachedExchange.decodes(request) {
            parts.words.append("--compressed")
        }
    }

    private static func redacted(_ line: String) -> String {
        guard let field = SentFields.fields([line]).first else { return line }
        let value = FieldRedaction.value(of: field)
        return value == field.value ? line : "\(field.name.rawName): \(value)"
    }

    private func addCookies(to parts: inout Parts) {
        guard let url = try? CurlURL(request.url),
            let line = ExchangeCookies(of: request, at: url, configuration)?.fieldLine()
        else { return }
        parts.words += ["--cookie", Self.quoted(includesSecrets ? String(line.dropFirst("Cookie: ".count)) : "…")]
    }

    private func addCredential(to parts: inout Parts) {
        guard let credential else { return }
        switch credential.kind {
        case .password:
            let value = includesSecrets ? "\(credential.user):\(credential.password)" : "…"
            parts.words += ["--anyauth", "--user", Self.quoted(value)]
        case .bearer(let token): parts.words += ["--oauth2-bearer", Self.quoted(includesSecrets ? token : "…")]
        case .privateKey, .privateKeyText: break
        }
    }

    private func addTrust(to parts: inout Parts) {
        if request.trustsAnyServer { parts.words.append("--insecure") }
        if request.caCertificates != nil {
            parts.notes.append("the request trusts certificates in memory")
        } else if let file = configuration.caFile {
            parts.words += ["--cacert", Self.quoted(file)]
        }
        let host = (try? CurlURL(request.url))?.host ?? ""
        if request.identity ?? configuration.identity(for: host) != nil {
            parts.notes.append("the request has a client identity")
        }
    }

    // MARK: File servers

    private func addFileServer(to parts: inout Parts) {
        switch body {
        case .body(.file(let source)): parts.words += ["--upload-file", Self.quoted(path(of: source) ?? "-")]
        case .omitted(isUpload: true): parts.words += ["--upload-file", Self.quoted("…")]
        case .omitted: break
        case .body(let body) where body.length == 0: break
        case .body, .form:
            parts.words += ["--upload-file", "-"]
            parts.notes.append("the body is on standard input")
        }
        switch request.transportSecurity {
        case .none: break
        case .try: parts.words.append("--ssl")
        case .required: parts.words.append("--ssl-reqd")
        }
        guard let credential = credential ?? request.credential else { return }
        if case .privateKey(let path, let passphrase) = credential.kind {
            parts.words += ["--key", Self.quoted(path)]
            if !passphrase.isEmpty { parts.words += ["--pass", Self.quoted(includesSecrets ? passphrase : "…")] }
        }
        if case .privateKeyText = credential.kind { parts.notes.append("the request has an SSH key in memory") }
        let value = includesSecrets ? "\(credential.user):\(credential.password)" : "…"
        parts.words += ["--user", Self.quoted(value)]
    }

    // MARK: The body

    /// Adds the body.
    ///
    /// - Returns: whether there is one.
    private func addBody(to parts: inout Parts) -> Bool {
        switch body {
        case .body(let body): return add(body, to: &parts)
        case .form(.bytes(let bytes, _)): add(bytes, to: &parts)
        case .form(.size(let size, _)): addStandardInput("the form of \(size) bytes", to: &parts)
        case .form(.unknown):
            parts.notes.append("the body is a form that is not encoded yet")
            return false
        case .omitted: return false
        }
        return true
    }

    private func add(_ body: RequestBody, to parts: inout Parts) -> Bool {
        switch body {
        case .none:
            let requiresBody = [.post, .put, .patch].contains(request.method)
            if requiresBody { parts.words += ["--data-binary", "''"] }
            return requiresBody
        case .data(let bytes): add(bytes, to: &parts)
        case .file(let source):
            guard let path = path(of: source) else {
                addStandardInput("the body of \(source.identity.size) bytes", to: &parts)
                break
            }
            parts.words += ["--data-binary", Self.quoted("@\(path)")]
        case .framed(let framed): addStandardInput("the form of \(framed.length) bytes", to: &parts)
        case .stream: addStandardInput("the stream", to: &parts)
        }
        return true
    }

    private func add(_ bytes: [UInt8], to parts: inout Parts) {
        if !includesSecrets, !bytes.isEmpty {
            parts.words += ["--data-binary", Self.quoted("…")]
        } else if bytes.count > Self.longestBody {
            addStandardInput("the body of \(bytes.count) bytes", to: &parts)
        } else if let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) {
            // `@` would be the beginning of a file's name.
            parts.words += [text.utf8.first == UInt8(ascii: "@") ? "--data-raw" : "--data-binary", Self.quoted(text)]
        } else {
            parts.source = "printf " + Self.format(bytes)
            parts.words += ["--data-binary", "@-"]
        }
    }

    private func addStandardInput(_ name: String, to parts: inout Parts) {
        parts.words += ["--data-binary", "@-"]
        parts.notes.append("standard input is \(name)")
    }

    /// Returns the path of an open file; `nil` if the file has no name any more.
    private func path(of source: UploadSource) -> String? {
        withUnsafeTemporaryAllocation(byteCount: Int(PATH_MAX), alignment: 1) { space in
            let link = "/proc/self/fd/\(source.descriptor.raw)"
            guard let target = space.assumingMemoryBound(to: CChar.self).baseAddress else { return nil }
            let count = readlink(link, target, space.count)
            guard count > 0, count < space.count else { return nil }
            let path = String(validating: space[..<count], as: UTF8.self)
            guard let path, access(path, F_OK) == 0 else { return nil }
            return path
        }
    }

    // MARK: Words

    /// Quotes a word for a shell: within single quotes only the quote itself is special.
    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: #"'\''"#) + "'"
    }

    /// Returns a quoted format for printf(1) that writes the bytes: octal escapes except for common characters.
    private static func format(_ bytes: [UInt8]) -> String {
        var text = "'"
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "%"): text += "%%"
            // At the beginning it would be that of an option.
            case UInt8(ascii: "-") where text == "'": text += "\\055"
            case 0x20...0x7E where byte != UInt8(ascii: "'") && byte != UInt8(ascii: "\\"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 8)
                text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
        }
        return text + "'"
    }
}
