import Curl
import HTTPTypes

/// Turns a request into the options of an easy handle.
struct RequestOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    let url: CurlURL
    /// Numeric addresses of whom libcurl will connect to, and under which name and port it looks for them.
    let addresses: [String]
    let connectTo: (host: String, port: Int)
    /// Field lines of the engine's own.
    let engineFields: [String]
    /// HTTP/2 broke here.
    var usesHTTP1 = false
    /// A challenge has been answered: its field outranks the request's own.
    var isAuthorized = false
    let trust: TrustOptions
    /// Few transfers get a large receive buffer, many a small one: libcurl allocates it for each handle.
    let receiveBuffer: Int

    /// What the engine speaks.
    static let protocols = "http,https"

    func apply(to exchange: Exchange) throws(CurlError) {
        try exchange.easy.set(.noSignal, to: true)
        try exchange.easy.set(.url, to: url.text)
        try exchange.easy.set(.protocols, to: Self.protocols)
        try exchange.easy.set(.followLocation, to: false)
        let version = usesHTTP1 ? .http1 : request.httpVersion ?? configuration.httpVersion
        try exchange.easy.set(.httpVersion, to: version.curlNumber)
        // Rather one connection for many than many that open at once.
        if version != .http1 { try exchange.easy.set(.pipeWait, to: true) }
        try exchange.easy.set(.http09, to: false)
        try exchange.easy.set(.suppressConnectHeaders, to: true)
        try exchange.easy.set(.netrc, to: false)
        try exchange.easy.set(.tcpKeepAlive, to: true)
        try exchange.easy.set(.connectTimeout, to: Int(configuration.connectTimeout))
        try exchange.easy.set(.bufferSize, to: receiveBuffer)
        exchange.stallTimeout = configuration.stallTimeout

        // An empty proxy also keeps libcurl from reading the environment.
        try exchange.easy.set(.proxy, to: request.proxy ?? configuration.proxy ?? "")
        if url.scheme == "https" { try applySecurity(to: exchange) }
        if !addresses.isEmpty, !Resolver.isAddress(connectTo.host) {
            var list = HeaderList()
            try list.append("+\(connectTo.host):\(connectTo.port):\(addresses.joined(separator: ","))")
            try exchange.easy.setAddresses(list)
        }
        try setHeaders(on: exchange)
    }

    private func applySecurity(to exchange: Exchange) throws(CurlError) {
        if let pem = request.caCertificates {
            try exchange.easy.set(.caCertificates, to: pem.utf8)
        } else if let file = configuration.caFile {
            try exchange.easy.set(.caFile, to: file)
        }
        try trust.apply(to: exchange)
        if trust.isPinnedToCertificates || request.caCertificates != nil || configuration.caFile != nil {
            // The system's directory would be trusted beside them.
            try exchange.easy.clear(.caPath)
        }
        guard let identity = request.identity ?? configuration.identity(for: url.host) else { return }
        switch identity.form {
        case .pem(let certificate, let key):
            try exchange.easy.set(.certificate, to: certificate)
            try exchange.easy.set(.key, to: key)
        case .pkcs12(let bytes):
            try exchange.easy.set(.certificateType, to: "P12")
            try exchange.easy.set(.certificate, to: bytes)
        }
        if let passphrase = identity.passphrase { try exchange.easy.set(.keyPassphrase, to: passphrase) }
        // What one identity may see must not be shown to another.
        try exchange.easy.set(.freshConnection, to: true)
        try exchange.easy.set(.forbidReuse, to: true)
        try exchange.easy.set(.sessionCache, to: false)
    }

    /// The value of `Authorization` where the request has a credential and nobody was asked for another.
    private var ownAuthorization: String? {
        guard !isAuthorized, let credential = request.credential else { return nil }
        return switch credential.kind {
        case .password: BasicAuthorization.fieldValue(for: credential)
        case .bearer(let token): "Bearer \(token)"
        }
    }

    private static func name(of line: String) -> String { line.prefix { $0 != ":" && $0 != ";" }.lowercased() }

    private func setHeaders(on exchange: Exchange) throws(CurlError) {
        var list = HeaderList()
        var hasAgent = false
        let own = ownAuthorization
        // What the engine says it says alone: two fields of a name would contradict each other.
        let engineNames = Set(engineFields.map { Self.name(of: $0) })
        if let own { try list.append("Authorization: \(own)") }
        for field in request.headerFields {
            if field.name == .userAgent { hasAgent = true }
            if field.name == .authorization, isAuthorized || own != nil { continue }
            if engineNames.contains(field.name.canonicalName) { continue }
            // libcurl takes `Name;` for a field without a value; `Name:` would remove it.
            try list.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        for line in configuration.additionalHeaders {
            let name = Self.name(of: line)
            if engineNames.contains(name) || request.headerFields.contains(where: { $0.name.canonicalName == name }) {
                continue
            }
            try list.append(line)
        }
        if !hasAgent { try list.append("User-Agent: \(configuration.userAgent)") }
        for line in engineFields { try list.append(line) }
        try exchange.easy.setHeaders(list)
    }
}
