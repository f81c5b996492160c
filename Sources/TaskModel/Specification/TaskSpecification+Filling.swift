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
        let (own, offered) = (setFields, options.setFields)
        // HTTP-only options apply only to tasks that use HTTP.
        let usable = speaksHTTP ? offered : offered.subtracting(.ofHTTP)
        var target = UnpackedTask(self)
        options.withMemory { source in
            for field in usable where field.isTaken(by: kind, having: own) { field.operations.copy(source, &target) }
        }
        var task = target.packed
        if kind == .download { task.directory = joined(with: options, nests: nestsDirectory) }
        // The digest in a Metalink replaces the list of digests.
        if task.metalink, self.checksumURL == nil { task.checksumURL = nil }
        return task
    }

    private func joined(with options: TaskSpecification, nests: Bool) -> String? {
        guard nests, let directory, let outer = options.directory else { return directory ?? options.directory }
        return outer + (outer.hasSuffix("/") ? "" : "/") + directory
    }
}

extension TaskField {
    /// Returns whether an entry of this kind takes the value.
    ///
    /// - Parameter own: the fields that the entry has.
    fileprivate func isTaken(by kind: TaskKind, having own: TaskFieldSet) -> Bool {
        guard kinds.contains(kind) else { return false }
        switch filling {
        case .never: return false
        case .ifAbsent, .nested: return !own.contains(self)
        case .together(let group): return own.isDisjoint(with: TaskFieldSet.of(group))
        }
    }
}

extension TaskFieldSet {
    private static let groups: [TaskField.Filling.Group: TaskFieldSet] = Dictionary(
        uniqueKeysWithValues: TaskField.Filling.Group.allCases.map { group in
            (group, TaskFieldSet(TaskField.all.filter { $0.filling == .together(group) }))
        })

    fileprivate static func of(_ group: TaskField.Filling.Group) -> TaskFieldSet { groups[group] ?? TaskFieldSet() }
}

extension TaskSpecification {
    /// Whether these options are values that every plain HTTP download takes.
    fileprivate var fillsPlainDownloads: Bool {
        kind == .download && (details?.fields.isDisjoint(with: .notCopied) ?? true)
    }
}

extension TaskFieldSet {
    /// The fields that a plain download does not take by a mere copy of all values.
    fileprivate static let notCopied = TaskFieldSet(
        TaskField.all.filter { field in
            field.name == "metalink" || field.kinds.only == .upload
                || field.filling == .never && !["kind", "url", "output", "key", "now"].contains(field.name)
        })
}
