/// An nginx on a free loopback port, serving its own directory.
package final class Nginx: Sendable {
    /// The TLS settings of the server.
    package struct TLS: Sendable {
        let identity: TestCertificates.Identity
        let clientAuthority: String?
        let staple: String?

        /// Creates the settings.
        ///
        /// - Parameters:
        ///   - identity: the certificate of the server and its key.
        ///   - clientAuthority: an authority in PEM; a client without a certificate from it receives 400.
        ///   - staple: an OCSP response (DER) to send with the certificate.
        package init(
            certificate identity: TestCertificates.Identity, clientAuthority: String? = nil, staple: String? = nil
        ) {
            self.identity = identity
            self.clientAuthority = clientAuthority
            self.staple = staple
        }

        fileprivate var settings: String {
            var lines = [
                "ssl_certificate \(identity.chain.path);", "ssl_certificate_key \(identity.key.path);",
            ]
            if let clientAuthority { lines += ["ssl_client_certificate \(clientAuthority);", "ssl_verify_client on;"] }
            if let staple { lines += ["ssl_stapling on;", "ssl_stapling_file \(staple);"] }
            return lines.joined(separator: " ")
        }
    }

    /// A line of the access log.
    package struct Access: Sendable {
        package let method: String
        package let path: String
        package let status: Int
        /// The number of bytes passed to the kernel, without the head.
        package let bodyBytes: Int64
        /// The number of the connection, unique during the server's life.
        package let connection: Int
        /// The protocol version, such as `HTTP/1.1` or `HTTP/2.0`.
        package let version: String
    }

    package let port: Int
    /// The directory that is served under `/`.
    package let root: String
    /// The directory of files uploaded by PUT.
    package let uploads: String
    private let scheme: String
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - tls: the TLS settings for `https`; `nil` for `http`.
    ///   - http2: whether HTTP/2 is enabled. With TLS it is offered beside HTTP/1.1; without TLS it is the only
    ///     protocol (nginx 1.22).
    ///   - settings: settings of the whole server, such as `ssl_protocols TLSv1.2;`.
    package init(
        _ locations: [Location] = [], tls: TLS? = nil, http2: Bool = false, settings: String = "",
        port wanted: Int? = nil
    ) async throws {
        directory = try TemporaryDirectory(mode: 0o755)
        let path = directory.path
        let root = try directory.makeDirectory("root")
        let uploads = try directory.makeDirectory("uploads")
        self.root = root
        self.uploads = uploads
        scheme = tls == nil ? "http" : "https"
        port = try wanted ?? FreePort.next()
        func filled(_ settings: String) -> String {
            settings.replacing("@ROOT@", with: root).replacing("@UPLOADS@", with: uploads)
                .replacing("@DIR@", with: path)
        }
        for location in locations {
            for (name, text) in location.files { try directory.write(text, to: name) }
        }
        let places = locations.map { "        location \($0.path) { \(filled($0.settings)) }" }
        // Use a single process: workers would outlive a master that is killed.
        let configuration = """
            daemon off;
            master_process off;
            pid \(path)/nginx.pid;
            error_log \(path)/error.log;
            events { worker_connections 12000; }
            http {
                log_format plain '$request_method $uri $status $body_bytes_sent $connection $server_protocol';
                access_log \(path)/access.log plain;
                client_body_temp_path \(path)/body;
                proxy_temp_path \(path)/proxy;
                fastcgi_temp_path \(path)/fastcgi;
                uwsgi_temp_path \(path)/uwsgi;
                scgi_temp_path \(path)/scgi;
                sendfile on;
                default_type application/octet-stream;
                ssl_protocols TLSv1.2 TLSv1.3;
                server {
                    listen 127.0.0.1:\(port)\(tls == nil ? "" : " ssl")\(http2 ? " http2" : "") backlog=4096;
                    \(tls?.settings ?? "")
                    \(filled(settings))
                    root \(root);
            \(places.joined(separator: "\n"))
                }
                server {
                    listen unix:\(path)/keep.sock;
                    access_log off;
                    location / { \(filled(Location.dav("/").settings)) }
                }
            }

            """
        let file = try directory.write(configuration, to: "nginx.conf")
        let log = directory.file("error.log")
        process = try await ServerProcess("nginx", ["nginx", "-p", path, "-e", log, "-c", file], port: port, log: log)
    }

    deinit { process.end() }

    /// Stops the server before it is deinitialised.
    package func stop() { process.end() }

    /// - Parameter host: a name that the client resolves to this machine, such as `localhost`.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "\(scheme)://\(host):\(port)\(path)" }

    /// Creates a file below the root.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
    }

    /// Returns the completed responses to requests for `path`, or all.
    package func accesses(for path: String? = nil) -> [Access] {
        textOfFile(at: directory.file("access.log")).split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 6, let status = Int(words[2]), let bytes = Int64(words[3]),
                let connection = Int(words[4])
            else { return nil }
            guard path == nil || words[1] == path ?? "" else { return nil }
            return Access(
                method: String(words[0]), path: String(words[1]), status: status, bodyBytes: bytes,
                connection: connection, version: String(words[5]))
        }
    }
}

/// An error for a test fixture that cannot be used here, with the reason.
package struct Unusable: Error, CustomStringConvertible {
    package let reason: String

    package init(reason: String) { self.reason = reason }

    package var description: String { reason }
}
