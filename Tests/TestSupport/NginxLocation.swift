extension Nginx {
    /// A place on the server.
    package struct Location: Sendable {
        /// What stands behind `location`: a prefix that begins and ends with a slash, or `= /path` for one path.
        let path: String
        /// With `@ROOT@`, `@UPLOADS@` and `@DIR@` for the server's directories.
        let settings: String
        /// Text that goes to a file of the server's own directory, by the file's name.
        var files: [String: String] = [:]

        /// Any settings. `@ROOT@` stands for ``Nginx/root``, `@UPLOADS@` for ``Nginx/uploads``, `@DIR@` for the
        /// directory that holds them and the server's own files.
        ///
        /// - Parameter path: as in nginx's configuration, such as `/a/`, `= /a` or `~ \.gz$`.
        package static func custom(_ path: String, _ settings: String) -> Location {
            Location(path: path, settings: settings)
        }

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

        /// Takes bodies by any method and keeps them beneath ``Nginx/uploads``: 201, or 204 where one is replaced.
        /// The answer's `X-Content-Type` says what the body's type was.
        package static func post(_ path: String) -> Location {
            // Nothing in nginx keeps the body of a POST but its own PUT, so the server asks itself for one.
            Location(
                path: path,
                settings: """
                    proxy_pass http://unix:@DIR@/keep.sock:/; proxy_method PUT; client_max_body_size 0; \
                    add_header X-Content-Type $http_content_type always;
                    """)
        }

        /// The files of the root, for this user alone (Basic, realm `test`).
        ///
        /// - Parameter password: without a colon or a line's end; nginx's file of users has no quoting.
        package static func basic(_ path: String, user: String, password: String) -> Location {
            let name = "users\(path.replacing("/", with: "-"))"
            return Location(
                path: path,
                settings: "alias @ROOT@/; auth_basic test; auth_basic_user_file @DIR@/\(name);",
                files: [name: "\(user):{PLAIN}\(password)\n"])
        }

        /// Sends the one path `path` on to `target`, with 301, 302, 303, 307 or 308.
        package static func redirect(_ path: String, to target: String, status: Int = 302) -> Location {
            Location(path: "= \(path)", settings: "return \(status) \"\(target)\";")
        }

        /// Answers 200 with what it was asked as text: the method and the path, then each of these headers as
        /// `Name: value`, with nothing behind the colon where the request had none.
        package static func echo(_ path: String, headers: [String]) -> Location {
            let lines = headers.map { name in
                "\(name): $http_\(name.lowercased().replacing("-", with: "_"))\\n"
            }
            return Location(
                path: path,
                settings: "default_type text/plain; return 200 \"$request_method $request_uri\\n\(lines.joined())\";")
        }

        /// The files of the root with these headers added, on errors too: `Set-Cookie`, `Cache-Control`, …
        package static func headers(_ path: String, _ headers: [(name: String, value: String)]) -> Location {
            let lines = headers.map { "add_header \($0.name) \"\($0.value.replacing("\"", with: "\\\""))\" always;" }
            return Location(path: path, settings: "alias @ROOT@/; " + lines.joined(separator: " "))
        }

        /// The files of the root, compressed for a client that takes gzip.
        package static func compressed(_ path: String) -> Location {
            Location(path: path, settings: "alias @ROOT@/; gzip on; gzip_types *; gzip_min_length 0;")
        }

        /// The files of the root without an `ETag`; `Last-Modified` stays.
        package static func withoutEntityTag(_ path: String) -> Location {
            Location(path: path, settings: "alias @ROOT@/; etag off;")
        }
    }
}
