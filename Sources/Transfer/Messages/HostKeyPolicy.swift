import Glibc

/// The policy for trusting SSH servers. No policy accepts every key.
public enum HostKeyPolicy: Sendable, Equatable, Codable {
    /// The keys in a file of OpenSSH's format (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). Host names may be plain,
    /// hashed or patterns, and `[name]:port` for a port other than 22. Revoked keys are refused; certificate
    /// authorities are not supported. The file is read for each connection and never written.
    case knownHosts(path: String)
    /// The keys in any of several files, as for ``knownHosts(path:)``, unless one of the files revokes the key.
    case knownHostsFiles([String])
    /// A single key, valid for any host name. The fingerprint is SHA-256 in base64, as printed by `ssh-keygen -l`,
    /// with or without `SHA256:` and padding.
    case fingerprint(String)

    /// The file `~/.ssh/known_hosts` of the process's effective user. If the user has no home directory, the path does
    /// not exist.
    public static let userKnownHosts = HostKeyPolicy.knownHosts(path: home + "/.ssh/known_hosts")

    /// ``userKnownHosts`` and the system's `/etc/ssh/ssh_known_hosts`, the files that ssh(1) reads.
    public static let userAndSystemKnownHosts = HostKeyPolicy.knownHostsFiles([
        home + "/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts",
    ])

    /// The paths of the policy's files.
    var files: [String] {
        switch self {
        case .knownHosts(let path): [path]
        case .knownHostsFiles(let paths): paths
        case .fingerprint: []
        }
    }

    /// The home directory from the system's account database. `HOME` is not used, because the caller controls it and
    /// this path determines trust.
    private static var home: String {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(geteuid(), &account, &space, space.count, &found) == 0, let directory = found?.pointee.pw_dir
        else { return "/nonexistent" }
        return String(cString: directory)
    }
}
