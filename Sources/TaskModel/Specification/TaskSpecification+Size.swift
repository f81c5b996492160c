extension TaskSpecification {
    /// An upper bound of the size as JSON, in bytes: every character may need an escape.
    package var estimatedSize: Int {
        if isURLAlone { return 2 * url.utf8.count + 400 }
        var values = UnpackedTask(self)
        return 2 * TaskField.ofJSON.reduce(0) { $0 + $1.operations.textSize(&values) } + 400
    }
}
