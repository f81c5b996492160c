import Glibc
import TaskFiles
import Transfer

/// A reader of the files with credentials: those that systemd passes, and those of the user of a user's own daemon.
struct CredentialReader {
    let environment: ProcessEnvironment

    /// A file that cannot be read, or does not contain a credential.
    struct Failure: Error {
        /// The reason, without a secret.
        var reason: String
    }

    func read(_ name: String) throws(Failure) -> HostCredential {
        let place = try place(of: name)
        let uid = environment.uid
        let bytes: [UInt8]
        do throws(SmallFile.Failure) {
            bytes = try SmallFile.read(place.path, limit: HostCredential.maximumFileSize) { status in
                guard status.st_mode & S_IFMT == S_IFREG else { return "is not a regular file" }
                return place.isPassed ? nil : Self.refusal(of: status, for: uid, at: place.path)
            }
        } catch {
            throw Failure(reason: "\(error)")
        }
        let credential: HostCredential
        do throws(FileError) {
            credential = try HostCredential(parsing: FileText.decode(bytes, file: place.path), file: place.path)
        } catch {
            throw Failure(reason: "\(error)")
        }
        if case .certificate(let text, _, _) = credential, PublicKeyPin(certificate: text) == nil {
            throw Failure(reason: "\(place.path): \"certificate\" contains no readable certificate")
        }
        return credential
    }

    /// Returns the path of the file, and whether systemd passes it.
    private func place(of name: String) throws(Failure) -> (path: String, isPassed: Bool) {
        let passed = environment.systemCredentials.map { "\($0)/\(name)" }
        if let passed, !SmallFile.isMissing(passed) { return (passed, true) }
        if let directory = environment.userCredentials { return ("\(directory)/\(name)", false) }
        if let passed {
            throw Failure(reason: "\(passed) does not exist; add LoadCredential=\(name):FILE to the unit")
        }
        throw Failure(
            reason: "CREDENTIALS_DIRECTORY is not set; systemd sets it for a unit with LoadCredential=\(name):FILE")
    }

    /// Returns why a user's file must not be used: another user could have written it, or can read it.
    static func refusal(of status: stat, for uid: UInt32, at path: String) -> String? {
        guard status.st_uid == uid else {
            return "belongs to another user (uid \(status.st_uid)); run: chown \(uid) \(path)"
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            return "is accessible to other users (mode 0\(mode)); run: chmod 600 \(path)"
        }
        return nil
    }
}
