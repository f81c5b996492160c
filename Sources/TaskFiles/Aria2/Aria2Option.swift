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
        let hint = NearestWord.to(name, among: known).map { "; did you mean `\($0)`?" }
        return "`\(name)` is no option of aria2's input files" + (hint ?? "")
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
        "ca-certificate": ([], "is not read from here; give --cacert FILE to dlctl, or set tls.ca-file"),
        "certificate": ([], "is not carried out: dld shows no certificate of its own"),
        "check-certificate": (["true"], "is not carried out: dld always checks certificates"),
        "conditional-get": (["false"], "is not carried out: dld does not compare with a file that is there"),
        "dry-run": (["false"], "would fetch nothing; take the entry out"),
        "follow-metalink": (["false"], "is not carried out here; give the Metalink's URL to dlctl add --metalink"),
        "follow-torrent": (["false"], "is not carried out: dld does not speak BitTorrent"),
        "ftp-type": (["binary"], "is not carried out: dld fetches bytes as they are"),
        "hash-check-only": (["false"], "would fetch nothing; take the entry out"),
        "index-out": ([], "names files of a torrent, and dld does not speak BitTorrent"),
        "interface": ([], "is not carried out: dld goes by the system's routes"),
        "load-cookies": ([], "is not read from here; give --cookies FILE to dlctl"),
        "metalink-base-uri": ([], "belongs to Metalinks; give one to dlctl add by itself"),
        "metalink-language": ([], "belongs to Metalinks; give one to dlctl add by itself"),
        "metalink-os": ([], "belongs to Metalinks; give one to dlctl add by itself"),
        "metalink-version": ([], "belongs to Metalinks; give one to dlctl add by itself"),
        "multiple-interface": ([], "is not carried out: dld goes by the system's routes"),
        "no-netrc": (["true"], "is not carried out: dld reads no .netrc; give http-user or ftp-user"),
        "no-proxy": ([""], "is not carried out; name a proxy only where one is to be used"),
        "parameterized-uri": (["false"], "makes many URLs of one; write them out"),
        "private-key": ([], "is not carried out: dld shows no certificate of its own"),
        "select-file": ([], "chooses among files of a torrent or Metalink; write the URL of each file"),
        "ssh-host-key-md": ([], "is not carried out: dld goes by its list of known hosts"),
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
