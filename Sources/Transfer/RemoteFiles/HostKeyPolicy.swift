import Glibc

/// Which SSH servers are trusted. There is no policy that takes any.
public enum HostKeyPolicy: Sendable, Equatable, Codable {
    /// Those whose key stands in a file of OpenSSH's form (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"): plain, hashed and
    /// with wildcards, by `[name]:port` where the port is not 22. Revoked keys are refused; certificate authorities
    /// are not known. The file is read for each connection, and never written.
    case knownHosts(path: String)
    /// As ``knownHosts(path:)``, of several files: a key in any of them will do, unless one of them revokes it.
    case knownHostsFiles([String])
    /// The one with this key, whatever its name: SHA-256 in base64, as `ssh-keygen -l` prints it, with or without
    /// `SHA256:` and padding.
    case fingerprint(String)

    /// `~/.ssh/known_hosts` of the user as whom the process runs; without a home, a path that does not exist.
    public static let userKnownHosts = HostKeyPolicy.knownHosts(path: home + "/.ssh/known_hosts")

    /// ``userKnownHosts``, and the system's `/etc/ssh/ssh_known_hosts`, as ssh(1) reads them.
    public static let userAndSystemKnownHosts = HostKeyPolicy.knownHostsFiles([
        home + "/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts",
    ])

    /// The files that it goes by.
    var files: [String] {
        switch self {
        case .knownHosts(let path): [path]
        case .knownHostsFiles(let paths): paths
        case .fingerprint: []
        }
    }

    /// As the system's accounts have it: `HOME` is the caller's to say, and this is about trust.
    private static var home: String {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(geteuid(), &account, &space, space.count, &found) == 0, let directory = found?.pointee.pw_dir
        else { return "/nonexistent" }
        return String(cString: directory)
    }
}
