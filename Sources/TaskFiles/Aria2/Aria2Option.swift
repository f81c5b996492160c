import TaskModel

/// The options of aria2 input files (aria2c(1), "Input File") and their treatment by dld.
///
/// An option that affects which bytes are fetched, where they are stored or which credentials are used is either
/// carried out or rejected. An option that only tunes aria2 is ignored with a note.
enum Aria2Option {
    enum Meaning: Equatable {
        case carriedOut
        case passedOver
        /// The option is not supported, but one of the `harmless` values is accepted because it describes what dld does
        /// anyway.
        case refused(harmless: [String], reason: String)
    }

    /// Returns the treatment of an option; `nil` for an unknown name.
    static func meaning(of name: String) -> Meaning? {
        if carriedOut.contains(name) { return .carriedOut }
        if let refusal = refused[name] { return .refused(harmless: refusal.harmless, reason: refusal.reason) }
        return tuning.contains(name) || ofTorrents.contains(name) ? .passedOver : nil
    }

    static func refusal(ofUnknown name: String) -> String {
        let known = carriedOut.union(refused.keys).union(tuning).union(ofTorrents)
        let hint = NearestWord.to(name, among: known).map { "; did you mean \"\($0)\"?" }
        return "\"\(name)\" is not an option of aria2 input files" + (hint ?? "")
    }

    /// Returns the name of the proxy option for a URL scheme; the options with the suffixes `-user` and `-passwd`
    /// accompany it.
    static func proxy(ofScheme scheme: String) -> String {
        switch scheme {
        case "http": "http-proxy"
        case "https": "https-proxy"
        default: "ftp-proxy"
        }
    }

    static let proxies = ["http-proxy", "https-proxy", "ftp-proxy", "all-proxy"]

    /// The options from which the fields of a task are read, and those that need no field.
    private static let carriedOut: Set<String> = Set(
        TaskField.all.flatMap { $0.aria2?.names ?? [] } + proxies.flatMap { [$0 + "-user", $0 + "-passwd"] }
            + ["continue"])

    private static let refused: [String: (harmless: [String], reason: String)] = [
        "ca-certificate": ([], "is not supported in input files; use dlctl add --cacert FILE, or set tls.ca-file"),
        "certificate": ([], "is not supported: dld has no client certificates"),
        "check-certificate": (["true"], "is not supported; to leave certificates unverified, add --insecure"),
        "dry-run": (["false"], "would fetch nothing; remove the entry"),
        "follow-metalink": (["false"], "is not supported in input files; use dlctl add --metalink URL"),
        "follow-torrent": (["false"], "is not supported: dld does not support BitTorrent"),
        "ftp-type": (["binary"], "is not supported: dld always transfers in binary mode"),
        "hash-check-only": (["false"], "would fetch nothing; remove the entry"),
        "index-out": ([], "applies to torrents, which dld does not support"),
        "interface": ([], "is not supported: dld uses the system's routes"),
        "load-cookies": ([], "is not supported in input files; use dlctl add --cookies FILE"),
        "metalink-base-uri": ([], "applies to Metalinks; use dlctl add --input FILE for a Metalink file"),
        "metalink-language": ([], "applies to Metalinks; use dlctl add --input FILE for a Metalink file"),
        "metalink-os": ([], "applies to Metalinks; use dlctl add --input FILE for a Metalink file"),
        "metalink-version": ([], "applies to Metalinks; use dlctl add --input FILE for a Metalink file"),
        "multiple-interface": ([], "is not supported: dld uses the system's routes"),
        "no-netrc": (["true"], "is not supported: dld does not read .netrc; use http-user or ftp-user"),
        "no-proxy": ([""], "is not supported; set a proxy only for the entries that use it"),
        "parameterized-uri": (["false"], "is not supported; write each URL in full"),
        "private-key": ([], "is not supported: dld has no client certificates"),
        "select-file": ([], "selects files of a torrent or Metalink; write the URL of each file"),
        "ssh-host-key-md": ([], "is not supported: dld uses its list of known hosts"),
    ]

    /// Options that control how aria2 works and when it gives up.
    private static let tuning: Set<String> = [
        "allow-piece-length-change", "always-resume", "async-dns", "check-integrity", "connect-timeout",
        "content-disposition-default-utf8", "disk-cache", "enable-http-keep-alive", "enable-http-pipelining",
        "enable-mmap", "file-allocation", "force-save", "ftp-pasv", "ftp-reuse-connection", "http-accept-gzip",
        "http-auth-challenge", "lowest-speed-limit", "max-file-not-found", "max-mmap-limit",
        "max-resume-failure-tries", "max-tries", "metalink-enable-unique-protocol", "metalink-location",
        "metalink-preferred-protocol", "min-split-size", "no-file-allocation-limit", "pause-metadata", "piece-length",
        "proxy-method", "realtime-chunk-checksum", "remove-control-file", "retry-wait", "reuse-uri",
        "rpc-save-upload-metadata", "save-not-found", "stream-piece-selector", "timeout", "uri-selector", "use-head",
    ]

    /// Options that have no meaning for a URL.
    private static let ofTorrents: Set<String> = [
        "bt-enable-hook-after-hash-check", "bt-enable-lpd", "bt-exclude-tracker", "bt-external-ip",
        "bt-force-encryption", "bt-hash-check-seed", "bt-load-saved-metadata", "bt-max-peers", "bt-metadata-only",
        "bt-min-crypto-level", "bt-prioritize-piece", "bt-remove-unselected-file", "bt-request-peer-speed-limit",
        "bt-require-crypto", "bt-save-metadata", "bt-seed-unverified", "bt-stop-timeout", "bt-tracker",
        "bt-tracker-connect-timeout", "bt-tracker-interval", "bt-tracker-timeout", "enable-peer-exchange",
        "max-upload-limit", "seed-ratio", "seed-time",
    ]
}
