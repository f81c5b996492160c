import Curl
import Glibc
import Synchronization

/// A form as the body of one request, over all its attempts. It is encoded once, and its temporary file is removed at
/// the end.
final class FormBody: Sendable {
    private enum State {
        case waiting
        case encoding(Int)
        case ready(EncodedMultipartFormData, RequestBody)
        /// The request is complete, and the body is no longer needed.
        case over(EncodedMultipartFormData?)
    }

    private let state = Mutex(State.waiting)
    /// The number of encodings begun. One that was begun before the request's end may run beside the next.
    private let encodings = Atomic<Int>(0)
    private let threshold: Int64
    private let directory: String
    private let make: @Sendable () -> MultipartFormData
    /// The form, if it exists before the request starts.
    private let known: MultipartFormData?

    /// Threads for encoding. Reading files and streams may be slow, so these threads do no other work.
    private static let threads = WorkerThreads(name: "dld-form", limit: 4)

    /// - Parameter make: called on a thread where it may block; once, and again for an attempt after the request's end.
    init(threshold: Int64, temporaryDirectory: String?, make: @escaping @Sendable () -> MultipartFormData) {
        self.threshold = threshold
        self.make = make
        known = nil
        directory = temporaryDirectory ?? Self.temporaryDirectory
    }

    init(_ form: MultipartFormData, threshold: Int64, temporaryDirectory: String?) {
        self.threshold = threshold
        make = { form }
        known = form
        directory = temporaryDirectory ?? Self.temporaryDirectory
    }

    deinit { finish() }

    private static var temporaryDirectory: String {
        guard let named = getenv("TMPDIR").map({ String(cString: $0) }), !named.isEmpty else { return "/var/tmp" }
        return named
    }

    /// The encoded form; `nil` until it is encoded. A form on disk is removed when the request is complete.
    var result: EncodedMultipartFormData? {
        state.withLock { state in
            switch state {
            case .ready(let result, _): result
            case .over(let result): result
            case .waiting, .encoding: nil
            }
        }
    }

    /// Returns what can be said of the form without reading files or streams, before, during and after the attempts.
    ///
    /// - Parameter limit: the maximum number of bytes to encode for the description.
    func description(limit: Int) -> FormDescription {
        if let known, known.contentLength <= limit, known.isInMemory, let bytes = try? known.encode() {
            return .bytes(bytes, contentType: known.contentType)
        }
        switch result {
        case .inMemory(let bytes, let type):
            return bytes.count <= limit
                ? .bytes(bytes, contentType: type) : .size(Int64(bytes.count), contentType: type)
        case .onDisk(_, let type, let size): return .size(size, contentType: type)
        case nil: return known.map { .size($0.contentLength, contentType: $0.contentType) } ?? .unknown
        }
    }

    var body: RequestBody {
        state.withLock { if case .ready(_, let body) = $0 { body } else { .none } }
    }

    /// Encodes the form, unless that has been done. Must not be called again before `then` was called.
    ///
    /// - Parameter then: called with the body's media type, at once or on another thread; not called if the form is no
    ///   longer needed.
    func prepare(then: @escaping @Sendable (Result<String, TransferError>) -> Void) {
        let number = encodings.wrappingAdd(1, ordering: .relaxed).newValue
        let known = state.withLock { state -> String? in
            if case .ready(let result, _) = state { return result.contentType }
            if case .waiting = state { state = .encoding(number) }
            return nil
        }
        if let known { return then(.success(known)) }
        Self.threads.perform { [self] in
            do throws(TransferError) {
                if let type = try encode(number) { then(.success(type)) }
            } catch {
                then(.failure(error))
            }
        }
    }

    private func isWanted(_ number: Int) -> Bool {
        state.withLock { if case .encoding(number) = $0 { true } else { false } }
    }

    /// - Returns: the media type; `nil` if the request completed before.
    private func encode(_ number: Int) throws(TransferError) -> String? {
        guard isWanted(number) else { return nil }
        let form = make()
        let result = try form.encode(threshold: threshold, temporaryDirectory: directory) { [self] in isWanted(number) }
        let body: RequestBody
        switch result {
        case .inMemory(let bytes, _): body = .data(bytes)
        case .onDisk(let path, _, _):
            do throws(TransferError) {
                body = .file(try UploadSource(path: path))
            } catch {
                _ = unlink(path)  // the failure that led here is the one to report
                throw error
            }
        }
        let isKept = state.withLock { state in
            guard case .encoding(number) = state else { return false }
            state = .ready(result, body)
            return true
        }
        if isKept { return result.contentType }
        result.removeFile()
        return nil
    }

    /// Makes the form available again, since the request has another attempt after its end.
    func reopen() {
        state.withLock { if case .over = $0 { $0 = .waiting } }
    }

    /// Releases the body, since the request is complete, and removes the temporary file.
    func finish() {
        let result = state.withLock { state -> EncodedMultipartFormData? in
            guard case .ready(let result, _) = state else {
                if case .over = state { return nil }
                state = .over(nil)
                return nil
            }
            state = .over(result)
            return result
        }
        result?.removeFile()
    }
}

/// The known contents of a form before it is sent, or afterwards.
enum FormDescription {
    /// The encoded form.
    case bytes([UInt8], contentType: String)
    /// The length of the encoded form in bytes.
    case size(Int64, contentType: String)
    /// A form that a closure makes when the request starts.
    case unknown

    var contentType: String? {
        switch self {
        case .bytes(_, let type), .size(_, let type): type
        case .unknown: nil
        }
    }
}

extension MultipartFormData {
    /// Whether no part is a file or a stream.
    fileprivate var isInMemory: Bool {
        parts.allSatisfy { if case .data = $0.body { true } else { false } }
    }
}

extension EncodedMultipartFormData {
    /// The value of the request's `Content-Type`.
    public var contentType: String {
        switch self {
        case .inMemory(_, let type), .onDisk(_, let type, _): type
        }
    }

    fileprivate func removeFile() {
        // A file that cannot be removed stays in the directory for temporary files, which the system clears.
        if case .onDisk(let path, _, _) = self { _ = unlink(path) }
    }
}
