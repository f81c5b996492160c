import TestSupport
import Testing

@testable import Transfer

@Suite("Bodies and forms as text")
struct RequestBodyDescriptionTests {
    private let secret = "hidden"

    /// Returns the text of a value, and checks that a dump contains neither its secret nor its bytes.
    private func text(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        #expect(!dumped.contains(secret) && !dumped.contains("104"), "\(dumped)")
        #expect(dumped.contains("\(value)"))
        return "\(value)"
    }

    @Test("a body shows its kind and its size")
    func bodies() throws {
        let place = try TemporaryDirectory()
        let source = try UploadSource(path: try place.write(secret, to: "f"))
        #expect(text(RequestBody.none) == "no body")
        #expect(text(RequestBody.data(Array(secret.utf8))) == "data, 6 bytes")
        #expect(text(RequestBody.data([104])) == "data, 1 byte")
        #expect(text(RequestBody.file(source)) == "file, 6 bytes")
        let framed = FramedFile(before: Array(secret.utf8), source: source, after: Array(secret.utf8))
        #expect(text(framed) == "framed file, 18 bytes")
        #expect(text(RequestBody.framed(framed)) == "framed file, 18 bytes")
        let pieces = AsyncStream { (continuation: AsyncStream<[UInt8]>.Continuation) in continuation.finish() }
        #expect(text(RequestBody.stream(BodyStream(length: 7) { pieces })) == "stream, 7 bytes")
        #expect(text(RequestBody.stream(BodyStream { pieces })) == "stream of unknown size")
    }

    @Test("a form shows the number of its parts and its size, and the reason why it cannot be sent")
    func forms() throws {
        var form = MultipartFormData(boundary: try MultipartBoundary("b"))
        #expect(text(form) == "form-data, 0 parts, \(form.contentLength) bytes")
        form.append(secret, name: "a")
        #expect(text(form) == "form-data, 1 part, \(form.contentLength) bytes")
        form.append(secret, name: "b")
        #expect(text(form) == "form-data, 2 parts, \(form.contentLength) bytes")
        form.append(length: -1, name: "c") { throw TransferError(.io, "none") }
        #expect(
            text(form) == "form-data, 2 parts, \(form.contentLength) bytes, invalid: a stream's length is negative")
    }

    @Test("an encoded form shows its place and its size")
    func encodedForms() throws {
        let memory = EncodedMultipartFormData.inMemory(body: Array(secret.utf8), contentType: "t")
        #expect(text(memory) == "form-data in memory, 6 bytes")
        let disk = EncodedMultipartFormData.onDisk(path: "/a\nb", contentType: "t", size: 1)
        #expect(text(disk) == "form-data in the file /a b, 1 byte")
    }
}
