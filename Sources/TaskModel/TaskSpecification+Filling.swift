extension TaskSpecification {
    /// Takes from `options` what the entry of a file leaves open.
    ///
    /// - Parameter nestsDirectory: the entry's directory lies beneath that of `options`.
    package func filled(from options: TaskSpecification, nestsDirectory: Bool = false) -> TaskSpecification {
        if options.isURLAlone { return self }
        var task = self
        // What HTTP alone knows is for those that speak it.
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
        task.directory = directory ?? options.directory
        if nestsDirectory, let directory, let outer = options.directory {
            task.directory = outer + (outer.hasSuffix("/") ? "" : "/") + directory
        }
        if checksum == nil, checksumURL == nil {
            task.checksum = options.checksum
            // What a Metalink says of its file takes the list's place.
            task.checksumURL = task.metalink ? nil : options.checksumURL
        }
        task.connections = connections ?? options.connections
        task.maxSize = maxSize ?? options.maxSize
        task.onConflict = onConflict ?? options.onConflict
        task.noMtime = noMtime || options.noMtime
        return task
    }
}
