extension TaskSpecification {
    /// An upper bound of the size as JSON, in bytes: every character may need an escape.
    package var estimatedSize: Int {
        if isURLAlone { return 2 * url.utf8.count + 400 }
        let fields = setFields.intersection(.ofJSON)
        return withMemory { values in 2 * fields.reduce(0) { $0 + $1.operations.textSize(values) } + 400 }
    }
}
