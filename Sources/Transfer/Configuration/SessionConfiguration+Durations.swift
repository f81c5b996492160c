extension SessionConfiguration {
    /// The ``connectTimeout`` as a duration. A new value is rounded up to whole milliseconds; a negative one counts as
    /// 0, and one beyond `Int64.max` milliseconds as that.
    public var connectTimeoutDuration: Duration {
        get { .milliseconds(connectTimeout) }
        set { connectTimeout = newValue.clampedMilliseconds }
    }

    /// The ``stallTimeout`` as a duration. A new value is converted as for ``connectTimeoutDuration``.
    public var stallTimeoutDuration: Duration {
        get { .milliseconds(stallTimeout) }
        set { stallTimeout = newValue.clampedMilliseconds }
    }
}
