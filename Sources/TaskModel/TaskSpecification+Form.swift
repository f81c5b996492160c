extension TaskSpecification {
    /// Whether the upload is sent as a form (`multipart/form-data`).
    public var isForm: Bool { !form.isEmpty || fileField != nil }

    /// Splits a form field at its first `=`.
    ///
    /// - Returns: the name and the value; `nil` where there is no `=` or the name is empty.
    public static func splitField(_ field: String) -> (name: String, value: String)? {
        let bytes = field.utf8
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals != bytes.startIndex else { return nil }
        return (String(field[..<equals]), String(field[bytes.index(after: equals)...]))
    }

    /// Checks the options of an upload's body: method, form fields and the name of the file's form field.
    func checkForm() throws(FieldError) {
        if let method, method != "PUT", method != "POST" {
            throw FieldError(field: "method", message: "must be PUT or POST")
        }
        guard isForm else { return }
        if method == "PUT" {
            throw FieldError(field: "method", message: "must be POST: a form is sent by no other method")
        }
        try Self.checkText(fileField, "fileField", limit: Limit.nameLength, empty: false)
        guard form.count <= Limit.formFields else {
            throw FieldError(field: "form", message: "has more than \(Limit.formFields) fields")
        }
        guard form.reduce(0, { $0 + $1.utf8.count }) <= Limit.formLength else {
            throw FieldError(field: "form", message: "is longer than \(Limit.formLength / 1024) KiB")
        }
        for (index, field) in form.enumerated() {
            // The message leaves out the field's text, which may be a secret.
            guard let (name, value) = Self.splitField(field) else {
                throw FieldError(field: "form[\(index)]", message: "is not of the form NAME=VALUE")
            }
            try Self.checkText(name, "form[\(index)]", limit: Limit.nameLength)
            guard !value.utf8.contains(0) else {
                throw FieldError(field: "form[\(index)]", message: "contains a NUL byte")
            }
        }
    }

    /// Refuses HTTP-only options where no HTTP request is made, instead of ignoring them silently.
    func checkProtocol(_ address: TaskAddress) throws(FieldError) {
        if address.isHTTP { return }
        let message = "is not supported for \(address.scheme)"
        try Self.refuse(method, "method", message)
        try Self.refuse(form.first, "form", message)
        try Self.refuse(fileField, "fileField", message)
        try Self.refuse(contentType, "contentType", message)
        if speaksHTTP { return }
        try Self.refuse(headers.first, "headers", message)
        try Self.refuse(cookies, "cookies", message)
        try Self.refuse(userAgent, "userAgent", message)
        try Self.refuse(referer, "referer", message)
    }

    /// Whether at least one URL uses HTTP: the URL itself, a mirror, or the list of digests.
    package var speaksHTTP: Bool {
        ([url, checksumURL].compactMap(\.self) + mirrors).contains { (try? TaskAddress(parsing: $0))?.isHTTP == true }
    }

    /// Checks the size of the cookies and their conflict with a `Cookie` header. The engine, which sends the cookies,
    /// validates each line.
    func checkCookies() throws(FieldError) {
        guard let cookies else { return }
        guard cookies.utf8.count <= Limit.cookiesLength else {
            throw FieldError(field: "cookies", message: "are longer than \(Limit.cookiesLength / 1024) KiB")
        }
        guard !headers.contains(where: { Self.splitHeader($0)?.name.lowercased() == "cookie" }) else {
            throw FieldError(field: "cookies", message: "cannot be combined with a Cookie header; give one of them")
        }
    }
}
