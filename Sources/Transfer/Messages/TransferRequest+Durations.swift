extension TransferRequest {
    /// The ``timeout`` as a duration; `nil` for the session's times. A new value is rounded up to whole milliseconds; a
    /// negative one counts as 0, and one beyond `Int64.max` milliseconds as that.
    public var timeoutDuration: Duration? {
        get { timeout.map { .milliseconds($0) } }
        set { timeout = newValue?.clampedMilliseconds }
    }

    /// The ``totalTimeout`` as a duration; `nil` for none. A new value is converted as for ``timeoutDuration``.
    public var totalTimeoutDuration: Duration? {
        get { totalTimeout.map { .milliseconds($0) } }
        set { totalTimeout = newValue?.clampedMilliseconds }
    }
}
