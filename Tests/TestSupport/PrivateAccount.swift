import FoundationEssentials
import Glibc

/// Returns a command that runs another command in a mount namespace with one additional user account.
///
/// pam_exec would not need an account, but vsftpd takes the end of any child process for the end of its session.
///
/// - Throws: ``Unusable`` if this process is not root, because it cannot mount.
func privateAccount(
    _ name: String, password: String, home: String, in directory: TemporaryDirectory
) async throws -> [String] {
    guard geteuid() == 0 else { throw Unusable(reason: "only root can show a server an account of its own") }
    let hash = try await run(["openssl", "passwd", "-6", "-stdin"], input: "\(password)\n")
    guard hash.succeeded, let word = hash.lines.first else {
        throw Unusable(reason: "openssl passwd: \(hash.error)")
    }
    let accounts = try String(contentsOfFile: "/etc/passwd", encoding: .utf8)
    // This user ID is in a range that Debian does not assign (policy, section 9.2.2).
    try directory.write("\(accounts)\(name):x:64321:64321::\(home):/bin/sh\n", to: "passwd")
    try directory.write("\(name):\(word):19000::::::\n", to: "shadow")
    try directory.makeDirectory("pam.d")
    let rules = "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n"
    try directory.write(rules, to: "pam.d/vsftpd")
    let mounts = ["passwd", "shadow", "pam.d"].map { name in "mount --bind \"$0/\(name)\" /etc/\(name)" }
    return [
        "unshare", "--mount", "--propagation", "slave", "sh", "-ec",
        mounts.joined(separator: "; ") + #"; exec "$@""#, directory.path,
    ]
}
