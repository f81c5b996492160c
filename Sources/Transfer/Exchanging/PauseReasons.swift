/// The reasons for which no body bytes are received or sent at present.
struct PauseReasons: OptionSet {
    let rawValue: UInt8
    static let suspended = PauseReasons(rawValue: 1)
    /// A delegate's decision about the response is pending.
    static let deciding = PauseReasons(rawValue: 2)
    /// The receiver of the bytes has no room for more.
    static let full = PauseReasons(rawValue: 4)
    /// A rate limit is exhausted.
    static let rate = PauseReasons(rawValue: 8)
    /// The source has no bytes to send yet.
    static let source = PauseReasons(rawValue: 16)
    /// A checkpoint has yet to be confirmed.
    static let checkpoint = PauseReasons(rawValue: 32)
    /// Too many blocks are queued for the disk.
    static let disk = PauseReasons(rawValue: 64)
}
