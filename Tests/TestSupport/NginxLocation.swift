extension Nginx {
    /// A location on the server.
    package struct Location: Sendable {
        /// The argument of `location`: a prefix that begins and ends with a slash, or `= /path` for one path.
        let path: String
        /// The settings, with `@ROOT@`, `@UPLOADS@` and `@DIR@` for the server's directories.
        let settings: String
        /// The contents of additional files in the server's own directory, by file name.
        var files: [String: String] = [:]

        /// Returns a location with any settings. `@ROOT@` stands for ``Nginx/root``, `@UPLOADS@` for ``Nginx/uploads``
        /// and `@DIR@` for the directory that contains them and the server's own files.
        ///
        /// - Parameter path: the argument of `location` in nginx's configuration, such as `/a/`, `= /a` or `~ \.gz$`.
        package static func custom(_ path: String, _ settings: String) -> Location {
            Location(path: path, settings: settings)
        }

        /// Serves the files of the root, with each connection limited to a rate.
        package static func limited(_ path: String, bytesPerSecond: Int) -> Location {
            Location(path: path, settings: "alias @ROOT@/; limit_rate \(bytesPerSecond);")
        }

        /// Accepts PUT uploads (ngx_http_dav_module) and stores them below ``Nginx/uploads``.
        package static func dav(_ path: String) -> Location {
            Location(
                path: path,
                settings: "alias @UPLOADS@/; dav_methods PUT; create_full_put_path on; client_max_body_size 0;")
        }

        /// Accepts request bodies of any method and stores them below ``Nginx/uploads``. The response is 201, or 204 if
        /// a file is replaced. Its `X-Content-Type` field is the content type of the request.
        package static func post(_ path: String) -> Location {
            // In nginx only its own PUT stores a body, so the server proxies the request to itself as a PUT.
            Location(
                path: path,
                settings: """
                    proxy_pass http://unix:@DIR@/keep.sock:/; proxy_method PUT; client_max_body_size 0; \
                    add_header X-Content-Type $http_content_type always;
                    """)
        }

        /// Serves the files of the root to this user only (Basic authentication, realm `test`).
        ///
        /// - Parameter password: the password, without colons or line ends, because nginx's user file has no quoting.
        package static func basic(_ path: String, user: String, password: String) -> Location {
            let name = "users\(path.replacing("/", with: "-"))"
            return Location(
                path: path,
                settings: "alias @ROOT@/; auth_basic test; auth_basic_user_file @DIR@/\(name);",
                files: [name: "\(user):{PLAIN}\(password)\n"])
        }

        /// Redirects the path `path` to `target` with status 301, 302, 303, 307 or 308.
        package static func redirect(_ path: String, to target: String, status: Int = 302) -> Location {
            Location(path: "= \(path)", settings: "return \(status) \"\(target)\";")
        }

        /// Responds with 200 and the request as text: the method and path, then each of these headers as `Name: value`,
        /// with an empty value if the request lacked it.
        ///
        /// - Parameter challenges: whether a request without a login gets a challenge by the Basic scheme.
        package static func echo(_ path: String, headers: [String], challenges: Bool = false) -> Location {
            let lines = headers.map { name in
                "\(name): $http_\(name.lowercased().replacing("-", with: "_"))\\n"
            }
            return Location(
                path: path,
                settings: (challenges ? challenge : "")
                    + "default_type text/plain; return 200 \"$request_method $request_uri\\n\(lines.joined())\";")
        }

        /// Settings that ask a client without a login for one, by the Basic scheme.
        package static let challenge =
            "if ($http_authorization = '') { add_header WWW-Authenticate 'Basic realm=\"o\"' always; return 401; } "

        /// Serves the files of the root with these headers added, also on errors: `Set-Cookie`, `Cache-Control`, …
        package static func headers(_ path: String, _ headers: [(name: String, value: String)]) -> Location {
            let lines = headers.map { "add_header \($0.name) \"\($0.value.replacing("\"", with: "\\\""))\" always;" }
            return Location(path: path, settings: "alias @ROOT@/; " + lines.joined(separator: " "))
        }

        /// Serves the files of the root, compressed for a client that accepts gzip.
        package static func compressed(_ path: String) -> Location {
            Location(path: path, settings: "alias @ROOT@/; gzip on; gzip_types *; gzip_min_length 0;")
        }

        /// Serves the files of the root with `Last-Modified` but without an `ETag`.
        package static func withoutEntityTag(_ path: String) -> Location {
            Location(path: path, settings: "alias @ROOT@/; etag off;")
        }
    }
}
