extension TaskSpecification {
    /// Returns the specification of a file's entry, with its missing values taken from `options`.
    ///
    /// - Parameter nestsDirectory: Whether the entry's directory is relative to the directory of `options`.
    package func filled(from options: TaskSpecification, nestsDirectory: Bool = false) -> TaskSpecification {
        if options.isURLAlone { return self }
        if isPlain, kind == .download, options.fillsPlainDownloads, speaksHTTP {
            // Copying `options` lets up to a million tasks share its `Details` object.
            var task = options
            task.url = url
            task.output = output
            task.key = key
            if priority != .normal { task.priority = priority }
            task.batch = batch ?? options.batch
            task.directory = joined(with: options, nests: nestsDirectory)
            return task
        }
        var task = self
        // HTTP-only options apply only to tasks that use HTTP.
        if speaksHTTP {
            if task.headers.isEmpty { task.headers = options.headers }
            task.cookies = cookies ?? options.cookies
            task.userAgent = userAgent ?? options.userAgent
            task.referer = referer ?? options.referer
        }
        if task.user == nil {
            task.user = options.user
            task.password = options.password
        }
        task.proxy = proxy ?? options.proxy
        task.caCertificates = caCertificates ?? options.caCertificates
        if task.priority == .normal { task.priority = options.priority }
        task.limit = limit ?? options.limit
        if startAt == nil {
            task.startAt = options.startAt
            task.startAtText = options.startAtText
        }
        task.afterTask = afterTask ?? options.afterTask
        task.batch = batch ?? options.batch
        task.paused = paused || options.paused
        guard kind == .download else {
            guard speaksHTTP else { return task }
            task.method = method ?? options.method
            task.contentType = contentType ?? options.contentType
            if task.form.isEmpty { task.form = options.form }
            task.fileField = fileField ?? options.fileField
            return task
        }
        task.metalink = metalink || options.metalink
        task.directory = joined(with: options, nests: nestsDirectory)
        if checksum == nil, checksumURL == nil {
            task.checksum = options.checksum
            // The digest in a Metalink replaces the list of digests.
            task.checksumURL = task.metalink ? nil : options.checksumURL
        }
        task.connections = connections ?? options.connections
        task.maxSize = maxSize ?? options.maxSize
        task.onConflict = onConflict ?? options.onConflict
        task.noMtime = noMtime || options.noMtime
        task.shared = shared || options.shared
        return task
    }

    private func joined(with options: TaskSpecification, nests: Bool) -> String? {
        guard nests, let directory, let outer = options.directory else { return directory ?? options.directory }
        return outer + (outer.hasSuffix("/") ? "" : "/") + directory
    }

    /// Whether `options` sets only values that every plain HTTP download inherits.
    private var fillsPlainDownloads: Bool {
        kind == .download && !metalink && mirrors.isEmpty && file == nil && method == nil && contentType == nil
            && form.isEmpty
            && fileField == nil && size == nil && pieceHashes == nil
    }
}
