import FoundationEssentials
import Glibc

/// A real nginx on a free loopback port, serving a directory of its own.
package final class Nginx: Sendable {
    /// A place on the server.
    package struct Location: Sendable {
        /// Begins and ends with a slash.
        let path: String
        let settings: String

        /// The files of the root, each connection held to so many bytes a second.
        package static func limited(_ path: String, bytesPerSecond: Int) -> Location {
            Location(path: path, settings: "alias @ROOT@/; limit_rate \(bytesPerSecond);")
        }

        /// Takes files by PUT (ngx_http_dav_module) and keeps them beneath ``Nginx/uploads``.
        package static func dav(_ path: String) -> Location {
            Location(
                path: path,
                settings: "alias @UPLOADS@/; dav_methods PUT; create_full_put_path on; client_max_body_size 0;")
        }
    }

    /// One line of the access log.
    package struct Access: Sendable {
        package let method: String
        package let path: String
        package let status: Int
        /// What was handed to the kernel, the head not counted.
        package let bodyBytes: Int64
    }

    package let port: Int
    /// The directory that is served under `/`.
    package let root: String
    /// Where the files go that were PUT.
    package let uploads: String
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    package init(_ locations: [Location] = []) async throws {
        directory = try TemporaryDirectory(mode: 0o755)
        let root = try directory.makeDirectory("root")
        let uploads = try directory.makeDirectory("uploads")
        self.root = root
        self.uploads = uploads
        port = try FreePort.next()
        let places = locations.map { location in
            let settings = location.settings.replacing("@ROOT@", with: root).replacing("@UPLOADS@", with: uploads)
            return "        location \(location.path) { \(settings) }"
        }
        let path = directory.path
        // One process and no workers, which would outlive a master that is killed.
        let configuration = """
            daemon off;
            master_process off;
            pid \(path)/nginx.pid;
            error_log \(path)/error.log;
            events { worker_connections 2048; }
            http {
                log_format plain '$request_method $uri $status $body_bytes_sent';
                access_log \(path)/access.log plain;
                client_body_temp_path \(path)/body;
                proxy_temp_path \(path)/proxy;
                fastcgi_temp_path \(path)/fastcgi;
                uwsgi_temp_path \(path)/uwsgi;
                scgi_temp_path \(path)/scgi;
                sendfile on;
                default_type application/octet-stream;
                server {
                    listen 127.0.0.1:\(port);
                    root \(root);
            \(places.joined(separator: "\n"))
                }
            }

            """
        let file = try directory.write(configuration, to: "nginx.conf")
        process = try ChildProcess(
            ["nginx", "-p", path, "-e", "\(path)/error.log", "-c", file], environment: ["PATH": Self.searchPath])
        try await eventually(that: "nginx on port \(port)", within: .seconds(10)) { [process, port, directory] in
            if process.poll() != nil {
                let log = (try? String(contentsOfFile: directory.file("error.log"), encoding: .utf8)) ?? ""
                throw Unusable(reason: "nginx ended at once: \(process.standardError)\(log)")
            }
            return (try? StreamSocket(port: port)) != nil
        }
    }

    deinit { process.end() }

    /// Debian keeps nginx where a plain user's `PATH` does not look.
    private static var searchPath: String {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    }

    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Puts a file beneath the root.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
    }

    /// The answers that ended so far to requests for `path`, or all.
    package func accesses(for path: String? = nil) -> [Access] {
        let log = (try? String(contentsOfFile: directory.file("access.log"), encoding: .utf8)) ?? ""
        return log.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 4, let status = Int(words[2]), let bytes = Int64(words[3]) else { return nil }
            guard path == nil || words[1] == path ?? "" else { return nil }
            return Access(method: String(words[0]), path: String(words[1]), status: status, bodyBytes: bytes)
        }
    }
}

/// A fixture that cannot be used here, with the reason.
package struct Unusable: Error, CustomStringConvertible {
    package let reason: String

    package init(reason: String) { self.reason = reason }

    package var description: String { reason }
}
