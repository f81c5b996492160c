/// A real nginx on a free loopback port, serving a directory of its own.
package final class Nginx: Sendable {
    /// How the server speaks TLS.
    package struct TLS: Sendable {
        let identity: TestCertificates.Identity
        let clientAuthority: String?
        let staple: String?

        /// - Parameters:
        ///   - identity: the certificate and its key that the server proves itself by.
        ///   - clientAuthority: PEM; a client without a certificate from it gets 400.
        ///   - staple: an OCSP response (DER) to hand out with the certificate.
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

    /// One line of the access log.
    package struct Access: Sendable {
        package let method: String
        package let path: String
        package let status: Int
        /// What was handed to the kernel, the head not counted.
        package let bodyBytes: Int64
        /// The number of the connection, unique while the server lives.
        package let connection: Int
        /// `HTTP/1.1`, `HTTP/2.0`.
        package let version: String
    }

    package let port: Int
    /// The directory that is served under `/`.
    package let root: String
    /// Where the files go that were PUT.
    package let uploads: String
    private let scheme: String
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// - Parameters:
    ///   - tls: `https` in place of `http`.
    ///   - http2: with TLS, HTTP/2 is offered beside HTTP/1.1; without, nothing else is understood (nginx 1.22).
    ///   - settings: of the server as a whole, such as `ssl_protocols TLSv1.2;`.
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
        // One process and no workers, which would outlive a master that is killed.
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

    /// Ends it before its time.
    package func stop() { process.end() }

    /// - Parameter host: `localhost`, or whatever name the client is told to find here.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "\(scheme)://\(host):\(port)\(path)" }

    /// Puts a file beneath the root.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
    }

    /// The answers that ended so far to requests for `path`, or all.
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

/// A fixture that cannot be used here, with the reason.
package struct Unusable: Error, CustomStringConvertible {
    package let reason: String

    package init(reason: String) { self.reason = reason }

    package var description: String { reason }
}
