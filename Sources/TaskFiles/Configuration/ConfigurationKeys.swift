/// The configuration's keys by section. A key moves from `notCarriedOut` to the known keys once the daemon supports it.
enum ConfigurationKeys {
    static let top = KeyTable(
        [
            "downloads", "uploads", "limits", "retry", "timeouts", "disk", "tls", "network", "hosts", "schedule",
            "queues", "watch", "history", "events", "notify", "control", "metrics", "log",
        ])
    static let downloads = KeyTable(["directory", "roots", "on-conflict", "layout"])
    static let uploads = KeyTable(["roots"])
    static let limits = KeyTable(
        [
            "active-tasks", "connections-per-task", "connections-per-host", "download-rate", "upload-rate",
            "tasks-per-owner", "tasks-per-batch", "active-tasks-per-owner", "bytes-per-owner", "records-per-owner",
        ])
    static let retry = KeyTable(["attempts", "base-delay", "max-delay"])
    static let timeouts = KeyTable(["connect", "stall"])
    static let disk = KeyTable(["min-free", "max-size"])
    static let tls = KeyTable(["ca-file"])
    static let network = KeyTable(["proxy", "no-proxy", "deny", "exempt"])
    static let host = KeyTable(
        [
            "connections", "http-version", "download-rate", "upload-rate", "requests-per-second", "headers",
            "credential", "owners", "trust", "proxy", "timeouts",
        ])
    static let trust = KeyTable(["ca-file", "pin"])
    static let window = KeyTable(["days", "from", "to", "download-rate", "upload-rate", "pause"])
    static let kept = KeyTable(["age", "count"])
    static let queue = KeyTable(["files", "prune"])
    static let watch = KeyTable(["directory", "defaults"])
    static let webhook = KeyTable(["url", "on", "batch", "headers", "secret"])
    static let control = KeyTable(["socket", "mode", "group", "admin-group"])
    static let metrics = KeyTable(["textfile"])
    static let log = KeyTable(["level"])
}
