/// The configuration's keys, section by section. A key moves from one list to the other when the daemon learns
/// to carry it out.
enum ConfigurationKeys {
    static let top = KeyTable(
        ["downloads", "uploads", "limits", "retry", "timeouts", "disk", "tls", "network", "hosts", "control", "log"],
        notCarriedOut: ["schedule", "queues", "watch", "history", "events", "metrics"])
    static let downloads = KeyTable(["directory", "roots", "on-conflict"])
    static let uploads = KeyTable(["roots"])
    static let limits = KeyTable(
        ["active-tasks", "connections-per-task", "connections-per-host", "tasks-per-owner"],
        notCarriedOut: ["download-rate", "upload-rate", "tasks-per-batch", "bytes-per-owner"])
    static let retry = KeyTable(["attempts", "base-delay", "max-delay"])
    static let timeouts = KeyTable(["connect", "stall"])
    static let disk = KeyTable(["min-free", "max-size"])
    static let tls = KeyTable(["ca-file"])
    static let network = KeyTable(["proxy"], notCarriedOut: ["deny"])
    static let host = KeyTable(
        ["connections", "http-version"],
        notCarriedOut: ["requests-per-second", "headers", "credential", "owners", "trust"])
    static let control = KeyTable(["socket", "mode", "group", "admin-group"])
    static let log = KeyTable(["level"])
}
