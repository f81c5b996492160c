extension DownloadRequest {
    /// A closure that decides the place of the file as a file URL, by the temporary file and the response's head.
    ///
    ///     let destination: DownloadRequest.Destination = { temporary, head in
    ///         (folder.appending(path: temporary.suggestedName), [.removePreviousFile])
    ///     }
    ///     let file = try await manager.download(url, to: destination).value
    public typealias Destination = DownloadDestination.DecideURL

    /// The same as ``Destination``.
    public typealias DownloadFileDestination = Destination

    /// The permitted changes to the file system.
    public typealias Options = DownloadDestination.Options
}
