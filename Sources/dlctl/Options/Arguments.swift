public import ArgumentParser
public import TaskModel

extension TaskID: ExpressibleByArgument {
    public init?(argument: String) {
        guard let id = TaskIDs.id(argument) else { return nil }
        self = id
    }
}

extension TaskKind: ExpressibleByArgument {}
extension TaskState: ExpressibleByArgument {
    /// The names that other programs have for the states.
    private static let otherNames: [String: TaskState] = [
        "running": .active, "downloading": .active, "done": .completed, "finished": .completed, "pending": .queued,
        "stopped": .paused, "error": .failed, "aborted": .cancelled,
    ]

    /// Returns the state that a wrong word most likely means.
    static func meant(by word: String) -> String? {
        otherNames[word]?.rawValue ?? NearestWord.to(word, among: allCases.map(\.rawValue))
    }
}

/// A length of time up to a week, such as `500ms`, `30s` or `10m`.
struct SpanArgument: ExpressibleByArgument, Equatable {
    let milliseconds: Milliseconds

    init?(argument: String) {
        guard let time = TimeSpan.parse(argument), (1...TaskSpecification.Limit.timeout).contains(time) else {
            return nil
        }
        milliseconds = time
    }
}

/// A rate in bytes per second, such as `500K`, `2M` or `1.5G`.
struct RateArgument: ExpressibleByArgument, Equatable {
    /// The rate, or `nil` for no limit, which is written as `none`.
    let bytesPerSecond: Int64?

    init?(argument: String) {
        if argument == "none" {
            bytesPerSecond = nil
            return
        }
        // To some programs 0 means no limit, to others no bytes.
        guard let rate = ByteSize.parse(argument), rate > 0 else { return nil }
        bytesPerSecond = rate
    }
}

/// A duration, in seconds where it has no unit: `30`, `0.5`, `5m`.
struct SecondsArgument: ExpressibleByArgument {
    let seconds: Double

    init?(argument: String) {
        if let span = TimeSpan.parse(argument) {
            seconds = Double(span) / 1000
            return
        }
        guard let seconds = Double(argument), seconds.isFinite, seconds >= 0,
            argument.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ".") })
        else { return nil }
        self.seconds = seconds
    }
}
