import TaskModel

/// The name of a file in a Metalink, made safe. The name is untrusted and may contain directories (RFC 5854, section
/// 4.1.2.1).
struct MetalinkName: Hashable {
    var directory: String?
    var output: String

    /// Validates a name.
    ///
    /// - Throws: ``FieldError`` for a name that is empty or absolute, contains `..`, or has a segment that cannot be
    ///   made safe.
    init(_ name: String) throws(FieldError) {
        func refuse(_ message: String, code: ErrorCode = .pathNotAllowed) -> FieldError {
            FieldError(field: "name", code: code, message: message)
        }
        func isSeparator(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }
        let bytes = Array(name.utf8)
        guard let first = bytes.first, let last = bytes.last else { throw refuse("is empty", code: .invalid) }
        let hasDrive = bytes.count > 2 && bytes[1] == UInt8(ascii: ":") && isSeparator(bytes[2])
        guard !isSeparator(first), !hasDrive else { throw refuse("must not be absolute") }
        guard !isSeparator(last) else { throw refuse("names a directory, not a file") }
        var segments: [String] = []
        for segment in bytes.split(whereSeparator: isSeparator) where !segment.elementsEqual(".".utf8) {
            guard !segment.elementsEqual("..".utf8) else { throw refuse("must not contain a .. component") }
            guard let safe = FileName.makeSafe(String(decoding: segment, as: UTF8.self)) else {
                throw refuse("contains a component that is not a file name")
            }
            segments.append(safe)
        }
        guard let output = segments.popLast() else { throw refuse("names a directory, not a file") }
        self.output = output
        try FileName.check(output, field: "name")
        guard !segments.isEmpty else { return }
        let directory = segments.joined(separator: "/")
        try FileName.checkDirectory(directory, field: "name")
        self.directory = directory
    }
}
