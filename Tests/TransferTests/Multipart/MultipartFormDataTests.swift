import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// A reader that returns `bytes` in pieces of at most `piece`, then ends or fails.
private final class PieceReader: MultipartReader {
    struct Broken: Error {}

    let bytes: [UInt8]
    let piece: Int
    let failure: (any Error)?
    private let position = Mutex(0)

    init(_ bytes: [UInt8], piece: Int = 7, failure: (any Error)? = nil) {
        self.bytes = bytes
        self.piece = piece
        self.failure = failure
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws -> Int {
        try position.withLock { position in
            if position == bytes.count, let failure { throw failure }
            let count = min(piece, space.count, bytes.count - position)
            space.copyBytes(from: bytes[position..<(position + count)])
            position += count
            return count
        }
    }
}

/// A reader that claims to have read any number of bytes.
private struct LyingReader: MultipartReader {
    let claim: @Sendable (Int) -> Int

    func read(into space: UnsafeMutableRawBufferPointer) throws -> Int { claim(space.count) }
}

@Suite("Forms with files (RFC 7578)")
struct MultipartFormDataTests {
    private let place: TemporaryDirectory

    init() throws {
        place = try TemporaryDirectory()
    }

    private func form(_ boundary: String = "B") throws -> MultipartFormData {
        MultipartFormData(boundary: try MultipartBoundary(boundary))
    }

    private func text(_ form: MultipartFormData) throws -> String {
        String(decoding: try form.encode(), as: UTF8.self)
    }

    /// Returns the error of the form in memory, after checking that it fails with the same error on the disk and leaves
    /// no file there.
    private func failure(_ form: MultipartFormData) -> TransferError.Code? {
        let inMemory = #expect(throws: TransferError.self) { try form.encode() }
        let onDisk = #expect(throws: TransferError.self) { try form.write(toFileAt: place.file("out")) }
        #expect(onDisk == inMemory)
        #expect(!TemporaryDirectory.names(beneath: place.path).contains("out"))
        return inMemory?.code
    }

    @Test("a small form, byte for byte")
    func exact() throws {
        var form = try form()
        form.append("value", name: "field")
        form.append([1, 0x80, 13, 10], name: "raw", mimeType: "application/x-raw")
        form.append(fileAt: try place.write("{}", to: "a.json"), name: "file")
        form.append(length: 3, name: "s", fileName: "s.bin") { PieceReader(Array("abc".utf8)) }
        let expected =
            Array(
                ("--B\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n"
                    + "--B\r\nContent-Disposition: form-data; name=\"raw\"\r\nContent-Type: application/x-raw\r\n\r\n")
                    .utf8) + [1, 0x80, 13, 10]
            + Array(
                ("\r\n--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.json\"\r\n"
                    + "Content-Type: application/json\r\n\r\n{}\r\n"
                    + "--B\r\nContent-Disposition: form-data; name=\"s\"; filename=\"s.bin\"\r\n"
                    + "Content-Type: application/octet-stream\r\n\r\nabc\r\n--B--\r\n").utf8)
        #expect(try form.encode() == expected)
        #expect(form.contentLength == Int64(expected.count))
        #expect(form.contentType == "multipart/form-data; boundary=B")
        // A second encoding, and one to the disk, give the same bytes.
        #expect(try form.encode() == expected)
        try form.write(toFileAt: place.file("out"))
        #expect(try bytes(ofFileAt: place.file("out")) == expected)
    }

    @Test("a form without parts is its last boundary")
    func noParts() throws {
        let form = try form()
        #expect(try text(form) == "--B--\r\n")
        #expect(form.contentLength == 7)
    }

    @Test("the length is that of what is encoded, whatever the form holds", arguments: 0..<64)
    func lengths(shape: Int) throws {
        var form = MultipartFormData()
        let sizes = [0, 1, 2, 4096, 262_143, 262_144, 262_145]
        for index in 0..<(shape % 8) {
            let size = sizes[(shape + index * 3) % sizes.count]
            let name = String(repeating: "n\"", count: index) + "ü"
            switch (shape + index) % 4 {
            case 0: form.append(Resource(size: Int64(size)).bytes, name: name)
            case 1: form.append(Resource(size: Int64(size)).bytes, name: name, fileName: "\r\n.png", mimeType: "a/b")
            case 2:
                let path = place.file("f\(index).txt")
                try Resource(size: Int64(size)).write(to: path)
                form.append(fileAt: path, name: name)
            default:
                form.append(length: Int64(size), name: name) {
                    PieceReader(Resource(size: Int64(size)).bytes, piece: 100_000)
                }
            }
        }
        let encoded = try form.encode()
        #expect(form.contentLength == Int64(encoded.count))
        try form.write(toFileAt: place.file("out"))
        #expect(try bytes(ofFileAt: place.file("out")) == encoded)
    }

    @Test(
        "no name leads out of its quotation marks",
        arguments: [
            (#"a"b"#, "a%22b"), ("a\rb", "a%0Db"), ("a\nb", "a%0Ab"),
            ("a\r\nX-Evil: 1\r\n\r\nbody", "a%0D%0AX-Evil: 1%0D%0A%0D%0Abody"),
            (#"a"; filename="b"#, "a%22; filename=%22b"), (#"a\"#, #"a\"#), ("naïve 😀", "naïve 😀"), ("50%22", "50%22"),
            ("", ""),
        ])
    func hostileNames(name: String, escaped: String) throws {
        var form = try form()
        form.append([], name: name, fileName: name, mimeType: "a/b")
        #expect(
            try text(form)
                == "--B\r\nContent-Disposition: form-data; name=\"\(escaped)\"; filename=\"\(escaped)\"\r\n"
                + "Content-Type: a/b\r\n\r\n\r\n--B--\r\n")
    }

    @Test("a file's own hostile name is escaped too")
    func hostileFile() throws {
        let path = try place.write("x", to: "a\"\r\n.txt")
        var form = try form()
        form.append(fileAt: path, name: "f")
        #expect(try text(form).contains("; filename=\"a%22%0D%0A.txt\"\r\nContent-Type: text/plain\r\n\r\nx\r\n"))
    }

    @Test("a NUL in a name, a file's name or a path is refused")
    func nul() throws {
        let path = try place.write("x", to: "a")
        for index in 0..<3 {
            var form = try form()
            switch index {
            case 0: form.append([], name: "a\u{0}b")
            case 1: form.append([], name: "a", fileName: "\u{0}")
            default: form.append(fileAt: path + "\u{0}.png", name: "a")
            }
            #expect(failure(form) == .invalidRequest)
        }
        let error = #expect(throws: TransferError.self) { try form().write(toFileAt: place.file("b\u{0}c")) }
        #expect(error?.code == .invalidRequest)
    }

    @Test(
        "a media type that leads out of its line is refused",
        arguments: ["", "a/b\r\nX: y", "a/b\n", "a/b\r", "a/\u{0}b", "a/\u{7F}", "a/ü"])
    func hostileTypes(type: String) throws {
        var form = try form()
        form.append([], name: "a", mimeType: type)
        #expect(failure(form) == .invalidRequest)
    }

    @Test(
        "a file's type is guessed from the last extension of its name",
        arguments: [
            ("a.PNG", "image/png"), ("a.tar.gz", "application/gzip"), ("png", "application/octet-stream"),
            (".png", "application/octet-stream"), ("a.", "application/octet-stream"),
            ("a.unknown", "application/octet-stream"), ("", "application/octet-stream"), ("ä.jpeg", "image/jpeg"),
        ])
    func guesses(name: String, type: String) throws {
        var form = try form()
        form.append([], name: "a", fileName: name)
        #expect(try text(form).contains("Content-Type: \(type)\r\n"))
    }

    @Test("a name and a type that are given stand before those of the file")
    func givenNames() throws {
        var form = try form()
        form.append(fileAt: try place.write("x", to: "a.png"), name: "f", fileName: "b.txt", mimeType: "c/d")
        #expect(try text(form).contains("filename=\"b.txt\"\r\nContent-Type: c/d\r\n"))
    }

    @Test("only regular files are taken, and nothing blocks on a FIFO")
    func notFiles() throws {
        #expect(mkfifo(place.file("fifo"), 0o600) == 0)
        for (path, code) in [
            (place.path, .invalidRequest), (place.file("fifo"), .invalidRequest), ("/dev/null", .invalidRequest),
            (place.file("none"), .sourceChanged), (place.file("none/none"), .sourceChanged), ("", .sourceChanged),
        ] as [(String, TransferError.Code)] {
            var form = try form()
            form.append(fileAt: path, name: "f")
            #expect(failure(form) == code)
        }
    }

    @Test("the first error is the one that comes out, and what is added after it is not looked at")
    func firstError() throws {
        var form = try form()
        form.append("kept", name: "a")
        let length = form.contentLength
        form.append([], name: "\u{0}")
        form.append(fileAt: place.file("none"), name: "b")
        form.append("more", name: "c")
        #expect(failure(form) == .invalidRequest)
        #expect(form.failure?.code == .invalidRequest)
        #expect(form.contentLength == length)
        let error = #expect(throws: TransferError.self) { try form.encode(temporaryDirectory: place.path) }
        #expect(error == form.failure)
    }

    @Test("a file that is another than when it was added is an error", arguments: 0..<4)
    func changedFile(harm: Int) throws {
        let path = try place.write("12345", to: "a")
        var form = try form()
        form.append(fileAt: path, name: "a")
        switch harm {
        case 0: truncate(path, 4)
        case 1: truncate(path, 6)
        case 2: truncate(path, 0)
        default:
            // The same size with other bytes; the time is set explicitly, because the clock's granularity may be too
            // coarse.
            try place.write("54321", to: "a")
            let past = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, path, past, 0) == 0)
        }
        #expect(failure(form) == .sourceChanged)
    }

    @Test("a file that grows or shrinks while it is read is an error", arguments: [600_000, 100_000] as [off_t])
    func changesMeanwhile(size: off_t) throws {
        let path = place.file("a")
        try Resource(size: 500_000).write(to: path)
        let part = try MultipartPart(
            name: "a", fileName: "a", mimeType: nil, length: 500_000, body: .file(try UploadSource(path: path)))
        let encoder = MultipartEncoder(boundary: try MultipartBoundary("B"), parts: [part])
        let error = #expect(throws: TransferError.self) {
            try encoder.encode { (piece: UnsafeRawBufferPointer) throws(TransferError) in
                if piece.count > 100_000 { truncate(path, size) }
            }
        }
        #expect(error?.code == .sourceChanged)
    }

    @Test("a file that is replaced or removed under its name is sent as it was")
    func replacedFile() throws {
        let path = try place.write("12345", to: "a")
        var form = try form()
        form.append(fileAt: path, name: "a")
        try place.write("other", to: "b")
        #expect(rename(place.file("b"), path) == 0)
        #expect(try text(form).contains("\r\n\r\n12345\r\n"))
        unlink(path)
        #expect(try text(form).contains("\r\n\r\n12345\r\n"))
    }

    @Test("a file of 3 MiB and a stream of as much arrive whole, in memory and on the disk")
    func large() throws {
        let resource = Resource(size: 3 << 20)
        try resource.write(to: place.file("large.bin"))
        var form = try form()
        form.append(fileAt: place.file("large.bin"), name: "f")
        form.append(length: resource.size, name: "s") { PieceReader(resource.bytes, piece: 99_991) }
        let head =
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"large.bin\"\r\n"
            + "Content-Type: application/octet-stream\r\n\r\n"
        let middle = "\r\n--B\r\nContent-Disposition: form-data; name=\"s\"\r\n\r\n"
        let expected =
            Array(head.utf8) + resource.bytes + Array(middle.utf8) + resource.bytes + Array("\r\n--B--\r\n".utf8)
        // The comparison is outside of #expect, which would print six million bytes.
        let inMemory = try form.encode() == expected
        #expect(inMemory)
        try form.write(toFileAt: place.file("out"))
        let onDisk = try bytes(ofFileAt: place.file("out")) == expected
        #expect(onDisk)
    }

    @Test("the threshold counts headers and boundaries, and the length decides exactly")
    func threshold() throws {
        var form = try form()
        form.append(fileAt: try place.write("12345", to: "a"), name: "a")
        let length = form.contentLength
        let type = form.contentType
        let body = try form.encode()
        #expect(
            try form.encode(threshold: length, temporaryDirectory: place.path)
                == .inMemory(body: body, contentType: type))
        #expect(try form.encode(temporaryDirectory: "/nowhere") == .inMemory(body: body, contentType: type))
        #expect(TemporaryDirectory.names(beneath: place.path) == ["a"])
        for _ in 0..<2 {
            let result = try form.encode(threshold: length - 1, temporaryDirectory: place.path)
            guard case .onDisk(let path, type, length) = result else {
                Issue.record("not on the disk: \(result)")
                return
            }
            #expect(path.hasPrefix(place.file("dld-form-")))
            #expect(try bytes(ofFileAt: path) == body)
        }
        #expect(TemporaryDirectory.names(beneath: place.path).count == 3)
    }

    @Test("the file is its owner's alone, and what has the name already is left as it is")
    func newFile() throws {
        var form = try form()
        form.append("x", name: "a")
        try form.write(toFileAt: place.file("out"))
        var status = stat()
        #expect(stat(place.file("out"), &status) == 0)
        #expect(status.st_mode == S_IFREG | 0o600)

        try place.write("mine", to: "taken")
        #expect(symlink("nowhere", place.file("link")) == 0)
        for name in ["taken", "link"] {
            let error = #expect(throws: TransferError.self) { try form.write(toFileAt: place.file(name)) }
            #expect(error?.code == .nameConflict)
        }
        #expect(try bytes(ofFileAt: place.file("taken")) == Array("mine".utf8))
        #expect(Set(TemporaryDirectory.names(beneath: place.path)) == ["out", "taken", "link"])
        let error = #expect(throws: TransferError.self) { try form.write(toFileAt: place.file("none/out")) }
        #expect(error?.code == .io)
        #expect(error?.systemError == ENOENT)
    }

    @Test("a device without room is a full disk")
    func fullDevice() throws {
        var form = try form()
        form.append("x", name: "a")
        let raw = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(raw >= 0)
        let error = #expect(throws: TransferError.self) { try form.write(to: FileDescriptorOwner(raw)) }
        #expect(error?.code == .diskFull)
    }

    @Test("on a full disk the file is taken away again, and its room is free", .enabled(if: geteuid() == 0))
    func fullDisk() async throws {
        let disk = try place.makeDirectory("disk")
        guard let mount = try? await Mount.tmpfs(at: disk, bytes: 1 << 20) else { return }
        try Resource(size: 3 << 20).write(to: place.file("large"))
        var form = try form()
        form.append(fileAt: place.file("large"), name: "f")
        let error = #expect(throws: TransferError.self) {
            try form.encode(threshold: 0, temporaryDirectory: mount.path)
        }
        #expect(error?.code == .diskFull)
        #expect(TemporaryDirectory.names(beneath: mount.path).isEmpty)
        var small = try self.form()
        small.append([UInt8](repeating: 1, count: 900_000), name: "f")
        try small.write(toFileAt: mount.path + "/small")
        #expect(try bytes(ofFileAt: mount.path + "/small").count == Int(small.contentLength))
    }

    @Test("a stream that gives fewer or more bytes than declared is an error", arguments: [0, 1, 9, 11, 20, 300_000])
    func lyingLength(given: Int) throws {
        var form = try form()
        form.append(length: 10, name: "s") { PieceReader([UInt8](repeating: 1, count: given)) }
        #expect(failure(form) == .sourceChanged)
        var empty = try self.form()
        empty.append(length: 0, name: "s") { PieceReader([UInt8](repeating: 1, count: given)) }
        if given > 0 { #expect(failure(empty) == .sourceChanged) }
    }

    @Test("a stream without an end is cut off after its length")
    func endless() throws {
        var form = try form()
        form.append(length: 1_000_000, name: "s") { LyingReader { $0 } }
        #expect(failure(form) == .sourceChanged)
    }

    @Test("a reader that claims what cannot be is an error", arguments: [-1, .min, .max] as [Int])
    func impossibleCount(claim: Int) throws {
        var form = try form()
        form.append(length: 10, name: "s") { LyingReader { _ in claim } }
        #expect(failure(form) == .internal)
    }

    @Test("a stream's own error comes out as it is, any other as one of reading")
    func brokenStream() throws {
        let own = TransferError(.permissionDenied, "not yours")
        for (error, code) in [(own, .permissionDenied), (PieceReader.Broken(), .io)]
            as [(any Error, TransferError.Code)]
        {
            var unreadable = try form()
            unreadable.append(length: 10, name: "s") { PieceReader([1, 2, 3], failure: error) }
            #expect(failure(unreadable) == code)
            var unopenable = try form()
            unopenable.append(length: 10, name: "s") { throw error }
            #expect(failure(unopenable) == code)
        }
    }

    @Test("a message is a single line, whatever the part is called")
    func message() throws {
        var form = try form()
        form.append(length: 1, name: "a\r\nb") { PieceReader([]) }
        let error = #expect(throws: TransferError.self) { try form.encode() }
        #expect(error?.message == #"the stream of the part "a\r\nb" is 1 bytes too short"#)
    }

    @Test("a declared length is not believed: neither memory nor sums break on it")
    func hugeLength() throws {
        var form = try form()
        form.append(length: .max - 1000, name: "s") { PieceReader([1]) }
        #expect(failure(form) == .sourceChanged)
        form.append(length: 2000, name: "s") { PieceReader([1]) }
        #expect(failure(form) == .tooLarge)
        for length in [Int64.max, -1, .min] {
            var form = try self.form()
            form.append(length: length, name: "s") { PieceReader([1]) }
            #expect(failure(form) == (length < 0 ? .invalidRequest : .tooLarge))
        }
    }
}
