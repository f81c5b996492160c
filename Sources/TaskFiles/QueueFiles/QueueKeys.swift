import TaskModel

/// The keys of a queue file: the long names of the options of `dlctl add` and `dlctl upload`.
enum QueueKeys {
    static let top = KeyTable(["batch", "defaults", "downloads", "uploads"])
    static let download = table(ofDownload + ofBoth, elsewhere: ofUpload, "belongs to uploads")
    static let upload = table(ofUpload + ofBoth, elsewhere: ofDownload, "belongs to downloads")
    static let defaults = table(
        (ofUpload + ofDownload + ofBoth).filter { !ofOneEntry.contains($0) }, elsewhere: ofOneEntry,
        "belongs to one entry; a default is for all")

    private static let ofDownload = [
        "metalink", "mirror", "mirrors", "output", "directory", "checksum", "checksum-url", "connections", "max-size",
        "on-conflict",
        "no-mtime", "shared",
    ]
    private static let ofUpload = ["file", "method", "content-type", "form", "file-field"]
    private static let ofBoth = [
        "url", "header", "user", "password-file", "cookies", "user-agent", "referer", "proxy", "cacert", "priority",
        "now", "limit", "start-at", "after-task", "key", "paused",
    ]
    private static let ofOneEntry = ["url", "mirror", "mirrors", "output", "file", "checksum", "key"]

    private static func table(_ known: [String], elsewhere: [String], _ place: String) -> KeyTable {
        var places = Dictionary(uniqueKeysWithValues: elsewhere.map { ($0, place) })
        places["batch"] = "belongs to the top of the file, for all its entries"
        return KeyTable(known, elsewhere: places)
    }

    /// Returns the key in a queue file for a field of ``TaskSpecification``.
    static func key(ofField field: String) -> String {
        switch field.prefix(while: { $0 != "[" }) {
        case "headers": "header"
        case "password": "password-file"
        case "caCertificates": "cacert"
        case "contentType": "content-type"
        case "fileField": "file-field"
        case "form": "form"
        case "userAgent": "user-agent"
        case "checksumURL": "checksum-url"
        case "maxSize": "max-size"
        case "startAt", "startAtText": "start-at"
        case "afterTask": "after-task"
        case "onConflict": "on-conflict"
        case "noMtime": "no-mtime"
        default: field
        }
    }
}
