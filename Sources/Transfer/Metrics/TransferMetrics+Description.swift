import Curl

extension TransferMetrics: CustomStringConvertible, CustomDebugStringConvertible {
    /// The time in microseconds from the beginning of the first exchange to the end of the last one; `nil` without an
    /// exchange.
    var elapsed: Int64? {
        guard let begin = exchanges.first?.began, let last, last.began >= begin else { return nil }
        return Int64(clamping: (last.began - begin) / 1000).addingReportingOverflow(last.timeline.ended).partialValue
    }

    /// The number of exchanges and redirects, and the time from the first to the last, as in
    /// `2 exchanges, 1 redirect, 12.5 ms`.
    public var description: String {
        var parts = [ReadableText.count(Int64(exchanges.count), "exchange")]
        if redirectCount > 0 { parts.append(ReadableText.count(Int64(redirectCount), "redirect")) }
        if let elapsed { parts.append(ReadableText.time(microseconds: elapsed)) }
        return parts.joined(separator: ", ")
    }

    /// The ``description``, and a line for each exchange.
    public var debugDescription: String {
        ([description] + exchanges.map { "    \($0.debugDescription)" }).joined(separator: "\n")
    }
}

extension ExchangeMetrics: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without secrets, the status, and what is known of the connection, as in
    /// `https://example.org/: 200, h2, 192.0.2.1:443, reused connection, 12.5 ms`.
    public var description: String { text(time: ReadableText.time(microseconds: timeline.ended)) }

    /// The ``description`` with the times of all steps.
    public var debugDescription: String { text(time: timeline.description) }

    /// A mirror without children, so that `dump` writes the ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    private func text(time: String) -> String {
        var parts = [status.map(String.init) ?? "no response"]
        if let protocolName { parts.append(protocolName) }
        if let peerAddress { parts.append(peerAddress) }
        if isReusedConnection { parts.append("reused connection") }
        if isFromCache { parts.append("from the cache") }
        return ReadableText.line("\(url): \((parts + [time]).joined(separator: ", "))")
    }
}

extension ExchangeMetrics.Timeline: CustomStringConvertible {
    /// The steps that occurred and their times, as in
    /// `connected 0.4 ms, request began 0.5 ms, first byte 1.2 ms, ended 1.3 ms`.
    public var description: String {
        let steps: [(name: String, time: Int64?)] = [
            ("name looked up", nameLookedUp), ("connected", connected), ("secured", secured),
            ("request began", requestBegan), ("first byte", firstByte), ("ended", ended),
        ]
        return steps.compactMap { step in step.time.map { "\(step.name) \(ReadableText.time(microseconds: $0))" } }
            .joined(separator: ", ")
    }
}
