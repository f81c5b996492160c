import ArgumentParser
import TaskModel

extension TaskID: ExpressibleByArgument {
    public init?(argument: String) {
        guard let id = TaskIDs.id(argument) else { return nil }
        self = id
    }
}

extension TaskState: ExpressibleByArgument {}
extension TaskPriority: ExpressibleByArgument {}
extension ConflictPolicy: ExpressibleByArgument {}

extension ConnectionCount: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

/// A size in bytes, `500K`, `2M`, `1.5G`.
struct SizeArgument: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = ByteSize.parse(argument) else { return nil }
        self.bytes = bytes
    }
}

/// Bytes a second, `500K`, `2M`, `1.5G`.
struct RateArgument: ExpressibleByArgument, Equatable {
    /// `nil`: any number, which is what 0 and `none` say.
    let bytesPerSecond: Int64?

    init?(argument: String) {
        if argument == "none" {
            bytesPerSecond = nil
            return
        }
        guard let rate = ByteSize.parse(argument) else { return nil }
        // Less than one byte a second is no rate, and not none.
        guard rate > 0 || !argument.contains(where: { ("1"..."9").contains($0) }) else { return nil }
        bytesPerSecond = rate > 0 ? rate : nil
    }
}

/// A value, or `none`, which takes back the one that there was.
struct ChangeArgument<Value: ExpressibleByArgument & Sendable & Equatable>: ExpressibleByArgument {
    let change: TaskChanges.Change<Value>

    init?(argument: String) {
        if argument == "none" {
            change = .takeBack
        } else {
            guard let value = Value(argument: argument) else { return nil }
            change = .set(value)
        }
    }
}

/// Seconds with or without a fraction.
struct SecondsArgument: ExpressibleByArgument {
    let seconds: Double

    init?(argument: String) {
        guard let seconds = Double(argument), seconds.isFinite, seconds >= 0,
            argument.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ".") })
        else { return nil }
        self.seconds = seconds
    }
}
