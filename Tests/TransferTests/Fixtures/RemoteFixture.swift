import Glibc
import TestSupport
import Testing

@testable import Transfer

/// The common fixture of the FTP and SFTP tests.
struct RemoteFixture {
    let place: Place
    let manager: SessionManager
    let restarts = Notes<String>()
    let resumes = Notes<Int64>()

    init(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws {
        place = try Place()
        manager = try SessionManager(configuration: .test(change))
        manager.delegate.downloadTaskDidRestart = { [restarts] _, reason in restarts.add(reason) }
        manager.delegate.downloadTaskDidResumeAtOffset = { [resumes] _, offset, _ in resumes.add(offset) }
    }

    func download(_ request: TransferRequest, _ resumeData: ResumeData? = nil) -> DownloadRequest {
        manager.download(request, to: place.target(), resumingWith: resumeData)
    }

    func outcome(_ request: TransferRequest, _ resumeData: ResumeData? = nil) async -> DownloadRequest.Response {
        await download(request, resumeData).outcome
    }

    /// Waits until a suspended download stops and returns its number of bytes: its loop still finishes the current
    /// work. A download that is not suspended stops only at its end.
    func standstill(of download: DownloadRequest) async throws -> Int64 {
        var last: Int64 = -1
        return try await eventually(have: "the download stands still", every: .milliseconds(100)) {
            let count = download.progress.transferredBytes
            defer { last = count }
            return count == last ? count : nil
        }
    }

    func upload(_ resource: Resource, _ request: TransferRequest) async throws -> TransferError? {
        await manager.upload(try source(resource), with: request).outcome.result.error
    }

    func source(_ resource: Resource) throws -> UploadSource {
        try resource.write(to: place.temporary.file("source"))
        return try UploadSource(path: place.temporary.file("source"))
    }

    /// Returns the resume data of a download that is cancelled once `count` bytes have been received.
    func interrupted(_ request: TransferRequest, after count: Int64) async throws -> ResumeData {
        // Checkpoints are not confirmed, so that the download stops at the limit.
        let manager = try SessionManager(configuration: .test { $0.checkpointLimit = count })
        manager.delegate.downloadTaskDidWriteData = { task, _, total, _ in
            if total >= count { task.cancel() }
        }
        let outcome = await manager.download(request, to: place.target()).outcome
        #expect(outcome.result.error?.code == .cancelled)
        let resumeData = try #require(outcome.resumeData)
        // Encoded and decoded, as in another process.
        return try #require(ResumeData(bytes: resumeData.bytes))
    }

    func names(beneath directory: String) -> Set<String> { Set(TemporaryDirectory.names(beneath: directory)) }
}

/// Sets a file's times, in seconds since 1970.
func setTime(_ seconds: Int, of path: String) {
    var times = [timespec(tv_sec: seconds, tv_nsec: 0), timespec(tv_sec: seconds, tv_nsec: 0)]
    utimensat(AT_FDCWD, path, &times, 0)
}

/// Names that a shell, a URL or a command might misinterpret.
let hostileNames = [
    "with space", "quote\"d", "apo'strophe", "back\\slash", "per%cent", "hash#tag", "a;type=a", "quest?ion", "ümläut 猫",
    "*star", "~tilde", "-rf", "a\" \"b", "\\\"", "{a,b}[1-9]", " lead and trail ",
]

/// Returns a name percent-encoded for a URL.
func escaped(_ name: String) -> String {
    name.utf8.map { byte in
        let isPlain = byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z")
        return isPlain ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
}
