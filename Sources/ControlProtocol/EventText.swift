import Glibc
package import TaskModel

/// The text of an ``EventNotification`` without an error, progress or totals, written and read without a general coder.
///
/// A client that waits for many tasks receives an event for each. The text is that of an encoder with sorted keys that
/// leaves slashes alone; any other text is for the general decoder.
package enum EventText {
    private static let (open, close): (StaticString, StaticString) = (
        #"{"jsonrpc":"2.0","method":"event","params":{"at":"#, "}}"
    )

    // MARK: Writing

    /// Appends an event's text.
    ///
    /// - Returns: `false`, and appends nothing, if the event needs a general encoder.
    package static func append(_ event: TaskEvent, to bytes: inout [UInt8]) -> Bool {
        let texts = [event.batch, event.key, event.path, event.url]
        guard event.error == nil, event.progress == nil, event.totals == nil,
            texts.allSatisfy({ $0?.utf8.allSatisfy(isPlain) ?? true })
        else { return false }
        bytes.append(open)
        bytes.append(number: event.at)
        bytes.append(#","batch":"#, text: event.batch)
        bytes.append(#","bytesDone":"#, number: event.bytesDone)
        bytes.append(#","bytesTotal":"#, number: event.bytesTotal)
        bytes.append(#","error":null,"id":"#, number: event.id?.rawValue)
        bytes.append(#","key":"#, text: event.key)
        bytes.append(#","kind":"#, text: event.kind?.rawValue)
        bytes.append(#","owner":"#, number: event.owner.map(Int64.init))
        bytes.append(#","path":"#, text: event.path)
        bytes.append(#","progress":null,"reason":"#, text: event.reason?.rawValue)
        bytes.append(#","sequence":"#, number: event.sequence)
        bytes.append(#","state":"#, text: event.state?.rawValue)
        bytes.append(#","totals":null,"type":"#, text: event.type.rawValue)
        bytes.append(#","url":"#, text: event.url)
        bytes.append(close)
        return true
    }

    /// Whether a byte stands for itself in a JSON text, and is ASCII.
    fileprivate static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    // MARK: Reading

    /// Reads a text that ``append(_:to:)`` wrote.
    ///
    /// - Returns: `nil` for any other text.
    package static func event(in bytes: UnsafeRawBufferPointer) -> TaskEvent? {
        var reader = Reader(bytes)
        guard reader.skip(open), let at = reader.number(),
            reader.skip(#","batch":"#), let batch = reader.text(),
            reader.skip(#","bytesDone":"#), let bytesDone = reader.numberOrNull(),
            reader.skip(#","bytesTotal":"#), let bytesTotal = reader.numberOrNull(),
            reader.skip(#","error":null,"id":"#), let id = reader.numberOrNull(),
            reader.skip(#","key":"#), let key = reader.text(),
            reader.skip(#","kind":"#), let kind = reader.word(TaskKind.self),
            reader.skip(#","owner":"#), let owner = reader.numberOrNull(),
            reader.skip(#","path":"#), let path = reader.text(),
            reader.skip(#","progress":null,"reason":"#), let reason = reader.word(TaskReason.self),
            reader.skip(#","sequence":"#), let sequence = reader.number(),
            reader.skip(#","state":"#), let state = reader.word(TaskState.self),
            reader.skip(#","totals":null,"type":"#), let type = reader.word(TaskEvent.Kind.self) ?? nil,
            reader.skip(#","url":"#), let url = reader.text(),
            reader.skip(close), reader.isAtEnd
        else { return nil }
        var event = TaskEvent(
            sequence: sequence, at: at, type: type, id: id.map { TaskID($0) }, state: state, reason: reason)
        if let owner {
            guard let uid = UInt32(exactly: owner) else { return nil }
            event.owner = uid
        }
        event.kind = kind
        (event.batch, event.key, event.url, event.path) = (batch, key, url, path)
        (event.bytesDone, event.bytesTotal) = (bytesDone, bytesTotal)
        return event
    }

    /// A cursor in a text. After a method returned `nil` or `false` its position is undefined.
    private struct Reader {
        private let bytes: UnsafeRawBufferPointer
        private var index = 0

        init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

        var isAtEnd: Bool { index == bytes.count }

        mutating func skip(_ text: StaticString) -> Bool {
            let end = index + text.utf8CodeUnitCount
            guard end <= bytes.count, let first = bytes.baseAddress,
                memcmp(first + index, text.utf8Start, end - index) == 0
            else { return false }
            index = end
            return true
        }

        /// Reads an integer without a fraction or exponent.
        mutating func number() -> Int64? {
            let isNegative = skip("-")
            let first = index
            var value: Int64 = 0
            while index < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) {
                let digit = Int64(bytes[index] - UInt8(ascii: "0"))
                let (scaled, isTooLarge) = value.multipliedReportingOverflow(by: 10)
                let (sum, isTooLargeToo) = scaled.subtractingReportingOverflow(digit)
                if isTooLarge || isTooLargeToo { return nil }
                value = sum
                index += 1
            }
            let hasLeadingZero = index - first > 1 && bytes[first] == UInt8(ascii: "0")
            guard index > first, !hasLeadingZero else { return nil }
            // The value was gathered below zero, where there is one number more.
            if isNegative { return value }
            return value == .min ? nil : -value
        }

        /// Reads an integer or null.
        mutating func numberOrNull() -> Int64?? {
            if skip("null") { return .some(nil) }
            return number().map { .some($0) } ?? nil
        }

        /// Reads a plain text or null.
        mutating func text() -> String?? {
            if skip("null") { return .some(nil) }
            guard skip("\"") else { return nil }
            let first = index
            while index < bytes.count, EventText.isPlain(bytes[index]) { index += 1 }
            let last = index
            guard skip("\"") else { return nil }
            return .some(String(decoding: bytes[first..<last], as: UTF8.self))
        }

        /// Reads a text that is a value of an enumeration, or null.
        mutating func word<Word: RawRepresentable>(_ type: Word.Type) -> Word?? where Word.RawValue == String {
            guard let text = text() else { return nil }
            guard let text else { return .some(nil) }
            return Word(rawValue: text).map { .some($0) } ?? nil
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ text: StaticString) {
        append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    fileprivate mutating func append(number: Int64) { append(contentsOf: String(number).utf8) }

    fileprivate mutating func append(_ key: StaticString, number: Int64?) {
        append(key)
        if let number { append(number: number) } else { append("null") }
    }

    fileprivate mutating func append(_ key: StaticString, text: String?) {
        append(key)
        guard let text else { return append("null") }
        append(UInt8(ascii: "\""))
        append(contentsOf: text.utf8)
        append(UInt8(ascii: "\""))
    }
}
