package import TaskModel

/// A receiver of events by HTTP: each event is sent to it as JSON by POST.
package struct Webhook: Sendable, Equatable {
    /// The URL, with its secrets; the scheme is `http` or `https`.
    package var url: String
    /// The types of events to send.
    package var types: Set<TaskEvent.Kind> = [.completed, .failed]
    /// The batch whose events are sent; `nil` for all events.
    package var batch: String?
    /// Additional header lines (`Name: value`).
    package var headers: [String] = []
    /// The key of the signature; `nil` for messages without one.
    package var secret: String?

    package init(url: String) { self.url = url }

    /// The filter that selects its events.
    package var filter: EventFilter { EventFilter(types: types, batch: batch) }
}

/// A type of event that can be sent: all that are in the journal.
private enum SentType {
    static let all = TaskEvent.Kind.allCases.filter(\.isRecorded)
    static let expectation = "one of \(all.map(\.rawValue).joined(separator: ", "))"
}

extension Configuration {
    /// Parses the section `notify`.
    mutating func readWebhooks(_ section: YAMLValue, baseDirectory: String, _ files: NamedFiles) {
        let expected = "a list of receivers, such as [{url: https://hooks.example.org/dld, on: [completed, failed]}]"
        guard let values = section.list(expected) else { return }
        guard values.count <= Bound.webhooks else {
            return section.report("contains more than \(Bound.webhooks) receivers")
        }
        for value in values {
            guard let webhook = Self.webhook(value, baseDirectory: baseDirectory, files) else { continue }
            guard !notify.contains(where: { $0.url == webhook.url && $0.batch == webhook.batch }) else {
                value.reportEntry("has the same \"url\" and \"batch\" as an earlier one")
                continue
            }
            notify.append(webhook)
        }
    }

    private static func webhook(_ value: YAMLValue, baseDirectory: String, _ files: NamedFiles) -> Webhook? {
        typealias Key = ConfigurationKeys.Webhook
        guard let values = value.mapping(Key.self, "a mapping with a url") else { return nil }
        guard let url = values[Key.url] else {
            value.reportEntry("has no \"url\"")
            return nil
        }
        guard let text = url.text("a URL such as https://hooks.example.org/dld") else { return nil }
        var webhook = Webhook(url: text)
        for (key, value) in values.entries(Key.self) {
            switch key {
            case .url: check(webhook, at: value)
            case .on: webhook.types = types(value)
            case .batch:
                webhook.batch = value.text("the name of a batch")
                if webhook.batch?.isEmpty == true {
                    value.report("is empty; give the name of a batch or remove the key")
                }
                refuseControls(webhook.batch, at: value)
            case .headers:
                let lines = value.shape == .list ? value.list("a list of header lines") ?? [] : [value]
                webhook.headers = lines.flatMap { line in
                    secret(line, "a header line such as \"Authorization: Bearer …\"", baseDirectory, files)?
                        .lines ?? []
                }
                check(webhook, at: value)
            case .secret:
                webhook.secret = secret(value, "the key of the signature", baseDirectory, files)?.password
                if webhook.secret?.isEmpty == true { value.report("is empty") }
                refuseControls(webhook.secret, at: value)
            }
        }
        return webhook
    }

    private static func types(_ value: YAMLValue) -> Set<TaskEvent.Kind> {
        let values = value.shape == .list ? value.list("a list of event types") ?? [] : [value]
        let types = values.compactMap { value in
            value.parse(SentType.expectation) { text in SentType.all.first { $0.rawValue == text } }
        }
        if values.isEmpty { value.report("names no type of event; omit it for completed and failed") }
        return Set(types)
    }

    /// Reports an invalid URL or header at `value`. The rules are those of a task.
    private static func check(_ webhook: Webhook, at value: YAMLValue) {
        var task = TaskSpecification(kind: .upload, url: webhook.url)
        task.file = "/"
        task.headers = webhook.headers
        do {
            try task.check()
            guard try TaskAddress(parsing: webhook.url).isHTTP else {
                if value.name == "url" { value.report("must begin with http:// or https://") }
                return
            }
        } catch {
            // An invalid URL is reported once, at the URL.
            if value.name == "url" || error.field != "url" {
                value.reportBare("\"\(value.name)\": \(error.message)", code: error.code)
            }
        }
    }

    /// Reports a control character in a text, which no batch has, and which is a mistake in a key.
    private static func refuseControls(_ text: String?, at value: YAMLValue) {
        guard let text, text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return }
        value.report("contains a control character, such as a line break")
    }

    /// A secret in the configuration, or in a file of its own.
    enum Secret {
        case text(String)
        case file(String)

        /// The header lines. Only a file has several: a line break within a line would add a line unnoticed.
        var lines: [String] {
            switch self {
            case .text(let text): [text]
            case .file(let text): SecretText.lines(text)
            }
        }

        /// The text, or the first line of the file.
        var password: String {
            switch self {
            case .text(let text): text
            case .file(let text): SecretText.password(text)
            }
        }
    }

    /// Returns a secret: a text, or for `@FILE` the file, whose path is relative to the configuration's directory.
    static func secret(
        _ value: YAMLValue, _ expected: String, _ baseDirectory: String, _ files: NamedFiles
    ) -> Secret? {
        guard let text = value.text(expected) else { return nil }
        guard text.hasPrefix("@") else { return .text(text) }
        let path = String(text.dropFirst())
        guard !path.isEmpty, path != "-" else {
            value.report("names no file; write @ and the path of the file")
            return nil
        }
        switch files.text(path.hasPrefix("/") ? path : baseDirectory + "/" + path, limit: SecretText.Limit.headers) {
        case .success(let text): return .file(text)
        case .failure(let error):
            value.reportBare("\"\(value.name)\": \(error.reason)")
            return nil
        }
    }
}
