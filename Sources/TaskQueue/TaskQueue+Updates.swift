package import TaskModel
import TaskStore

extension TaskQueue {
    /// Changes a task's options. The change is durable when the function returns. A running task is stopped for any
    /// change except of its rate limit or priority. It keeps its bytes, does not lose an attempt, and continues
    /// immediately with the new options. Where the change is refused, the task continues to run undisturbed.
    ///
    /// - Returns: the task after the change; `nil` where the id is unknown or the caller may not see the task.
    /// - Throws: the invalid field, as a field of `changes`; a refusal where the task is completed or cancelled.
    package func update(
        _ id: TaskID, by changes: TaskChanges, for caller: Caller
    ) async throws(QueueError) -> TaskStatus? {
        try Self.requireContent(of: changes)
        switch try await update(part: [id], by: changes, for: caller)[id] {
        case .updated, .unchanged, .unknown, nil: break
        case .refused(let transition): throw .refused(.wrongState, "task \(id) \(transition)")
        case .wrong(let error): throw .field(Self.beneathChanges(error))
        }
        // A missing task is reported by the status.
        return try await status(of: id, for: caller)
    }

    /// Changes the options of each task in `ids`, like ``update(_:by:for:)``.
    package func update(
        _ ids: [TaskID], by changes: TaskChanges, for caller: Caller
    ) async throws(QueueError) -> ChangeOutcome {
        try check(changes, ofSeveral: ids.count > 1, by: caller)
        var outcome = ChangeOutcome()
        for part in Self.parts(of: ids) {
            outcome.merge(try await update(part: part, by: changes, for: caller), of: part)
        }
        return outcome
    }

    /// Changes the options of every task that matches, like ``update(_:by:for:)``. Completed and cancelled tasks are
    /// skipped.
    package func update(
        matching filter: TaskFilter, by changes: TaskChanges, for caller: Caller
    ) async throws(QueueError) -> ChangeOutcome {
        try check(changes, ofSeveral: true, by: caller)
        var outcome = ChangeOutcome()
        try await eachPart(matching: filter, by: caller) { ids throws(QueueError) in
            let outcomes = try await update(part: ids, by: changes, for: caller).filter { _, outcome in
                switch outcome {
                case .refused, .unknown: false
                case .updated, .unchanged, .wrong: true
                }
            }
            outcome.merge(outcomes, of: ids)
            outcome.dropFurtherRefusals()
        }
        return outcome
    }

    // MARK: Parts of one commit

    private func update(
        part ids: [TaskID], by changes: TaskChanges, for caller: Caller
    ) async throws(QueueError) -> [TaskID: UpdateOutcome] {
        let (store, settings, logger, now) = (store, settings, logger, clock.now())
        if let id = changes.afterTask?.value, ((try? store.record(id, owner: caller.scope)) ?? nil) == nil {
            throw .field(FieldError(field: "changes.afterTask", code: .unknownTask, message: "there is no task \(id)"))
        }
        let validate: TaskStore.Validation = { (asked, before, owner) throws(FieldError) in
            var admission = Admission(settings: settings, caller: caller, now: now)
            return try admission.readmit(asked, after: before, names: changes.isOfPath, owner: owner)
        }
        let expected = try stored { () throws(StoreError) in
            try store.checkUpdate(ids, by: changes, owner: caller.scope, now: now, validate: validate)
        }
        let changing = ids.filter { expected[$0] == .updated }
        guard !changing.isEmpty else { return expected }
        if let directory = changes.directory { try await check(directory.value, of: changing, for: caller) }

        let write: @Sendable ([TaskID]) async -> Result<[TaskID: UpdateOutcome], StoreError> = { ids in
            do throws(StoreError) {
                let outcomes = try await store.update(
                    ids, by: changes, owner: caller.scope, quota: settings.quota, now: now, validate: validate)
                let updated = outcomes.filter { $0.value == .updated }.keys
                logger.log(CommandLog(.updated, "changed", updated).by(caller))
                return .success(outcomes)
            } catch {
                return .failure(error)
            }
        }
        // This check comes first, so that no task is stopped for a change that the store refuses.
        try stored { () throws(StoreError) in try self.store.checkAcceptsChanges() }
        let result: Result<[TaskID: UpdateOutcome], StoreError>
        if changes.areTakenUpAtOnce {
            result = await write(changing)
            if let limit = changes.limit {
                // Where a commit failed, the tasks of earlier commits have been changed nevertheless.
                let taken = try stored { () throws(StoreError) in
                    if case .success(let outcomes) = result { return outcomes }
                    return try store.checkUpdate(
                        changing, by: changes, owner: caller.scope, now: now, validate: validate)
                }
                for (id, outcome) in taken where [.updated, .unchanged].contains(outcome) {
                    await onSharedThreads { await scheduler.limit(id, to: limit.value) }
                }
            }
        } else {
            result = await scheduler.withStopped(
                changing, order: .release, owner: caller.scope, restartsAtOnce: true
            ) { [self] _ in
                guard changes.isOfPath || changes.isOfDigest else { return await write(changing) }
                return await updateFiles(of: changing, by: changes, for: caller, write)
            }
        }
        if changes.url != nil, case .success(let outcomes) = result {
            // What the host asked for concerned another URL.
            let updated = outcomes.filter { $0.value == .updated }.map(\.key)
            await onSharedThreads { await scheduler.endDelays(causedBy: updated) }
        }
        await changed()
        let outcomes = try stored { () throws(StoreError) in try result.get() }
        return expected.merging(outcomes) { $1 }
    }

    /// Checks a new directory as that of a new task is checked, for those of the tasks that are the caller's.
    private func check(_ directory: String?, of ids: [TaskID], for caller: Caller) async throws(QueueError) {
        let (store, settings) = (store, settings)
        var place: DownloadPlace?
        try stored { () throws(StoreError) in
            try store.forEachRecord(of: ids, owner: caller.uid) { record in
                guard place == nil, record.specification.kind == .download else { return }
                // An invalid one is refused for each task.
                guard
                    let settled = try? DownloadPlace.settled(
                        directory, isShared: false, owner: caller.uid, settings: settings)
                else { return }
                place = try? DownloadPlace(directory: settled, owner: caller.uid, settings: settings)
            }
        }
        guard let place else { return }
        let placed = Admission.PlacedTask(place: place, user: caller.identity, index: 0)
        if let found = await placeGuard.refusal(of: [placed], settings) {
            throw .field(FieldError(field: "changes.directory", code: found.code, message: found.message))
        }
    }

    /// Writes changes of the directory, the name or the expected digest. A part file is moved along, and a task whose
    /// file is already finished is refused.
    private func updateFiles(
        of ids: [TaskID], by changes: TaskChanges, for caller: Caller,
        _ write: @Sendable ([TaskID]) async -> Result<[TaskID: UpdateOutcome], StoreError>
    ) async -> Result<[TaskID: UpdateOutcome], StoreError> {
        let relocation = PartRelocation(
            store: store, settings: settings, detachedPlaces: scheduler.shared.detachedPlaces)
        return await placesOfParts.withLock {
            do throws(StoreError) {
                var refused = try relocation.finished(ids, field: changes.directory == nil ? "changes" : "directory")
                var begun = PartRelocation.Begun()
                if let directory = changes.directory {
                    begun = try await relocation.begin(
                        ids.filter { refused[$0] == nil }, to: directory.value, by: caller)
                    refused.merge(begun.refused) { $1 }
                }
                let result = await write(ids.filter { refused[$0] == nil })
                try await relocation.settle(begun.moves)
                return result.map { $0.merging(refused.mapValues { .wrong($0) }) { $1 } }
            } catch {
                return .failure(error)
            }
        }
    }

    /// Completes the moves of part files that were in progress when the daemon stopped.
    func completePartMoves() async throws(QueueError) {
        let relocation = PartRelocation(
            store: store, settings: settings, detachedPlaces: scheduler.shared.detachedPlaces)
        try await stored { () async throws(StoreError) in
            let moves = try store.partMoves()
            if !moves.isEmpty { try await relocation.settle(moves) }
        }
    }

    // MARK: Validation

    private static func requireContent(of changes: TaskChanges) throws(QueueError) {
        guard changes.isEmpty else { return }
        let fields = TaskField.changeable.map(\.name).joined(separator: ", ")
        throw .field(FieldError(field: "changes", message: "is empty; give one or more of \(fields)"))
    }

    /// Refuses changes that are invalid for every task once, instead of once per task.
    private func check(
        _ changes: TaskChanges, ofSeveral isOfSeveral: Bool, by caller: Caller
    ) throws(QueueError) {
        try Self.requireContent(of: changes)
        if isOfSeveral, let field = changes.fieldOfOneTask {
            throw .field(FieldError(field: "changes.\(field)", message: "can be set for one task only"))
        }
        var sample = TaskSpecification(url: "http://localhost/")
        sample.user = "user"
        var admission = Admission(settings: settings, caller: caller, now: clock.now())
        do throws(FieldError) {
            _ = try admission.readmit(changes.applied(to: sample), after: sample, names: true, owner: caller.uid)
        } catch {
            throw .field(Self.beneathChanges(error))
        }
    }

    private static func beneathChanges(_ error: FieldError) -> FieldError {
        FieldError(
            field: error.field == "changes" ? "changes" : "changes.\(error.field)", code: error.code,
            message: error.message)
    }
}

extension ChangeOutcome {
    fileprivate mutating func merge(_ outcomes: [TaskID: UpdateOutcome], of ids: [TaskID]) {
        for id in ids {
            switch outcomes[id] {
            case .updated: changed += 1
            case .unchanged, nil: break
            case .unknown: refused.append(.init(id: id, reason: .unknown))
            case .refused(let transition): refused.append(.init(id: id, reason: .transition(transition)))
            case .wrong(let error): refused.append(.init(id: id, reason: .field(error)))
            }
        }
    }
}
