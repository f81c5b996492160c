/// Where a download's file goes, once the head of its answer is judged.
extension DownloadFile {
    /// Finds the file's place, and makes sure that there is room for it.
    ///
    /// - Parameters:
    ///   - total: bytes of the whole file, where known.
    ///   - ofMirror: another server answers than the one that was asked for the file.
    /// - Throws: why it cannot lie there, also where there is such a file and that is enough, or `remoteChanged` where what is there of it cannot go along.
    func place(_ metadata: ResourceMetadata, total: Int64?, ofMirror: Bool = false) throws(TransferError)
        -> FileDestination
    {
        let known = target
        let target = if let known { known } else { try decide(metadata, total: total) }
        // Told first: a file that can never fit would wait for room for ever.
        if let total { try target.directory.check(canHold: total) }
        try takeShare(of: target, total: total)
        try checkSpace(in: target, for: total.map { $0 - count })
        let destination = try target.destination(metadata)
        if case .skip = destination.conflict, target.directory.contains(destination.name),
            target.directory.publishedSize(of: destination.name, by: target.owner) == nil
        {
            throw .taken(destination, in: target.directory)
        }
        if case .overwrite = destination.conflict, target.directory.isDirectory(destination.name) {
            throw TransferError(.nameConflict, "\(target.directory.path(of: destination.name)) is a directory")
        }
        if let total { try destination.check(size: total) }
        isChecked = destination.pieces != nil
        let isStandIn = ofMirror && !task.mismatches.isEmpty
        expect(destination.digest, stated: isStandIn ? task.stated?.digest : stated(metadata))
        if isStandIn, !isJoinable {
            throw TransferError(.checksumMismatch, "nothing tells whether what the mirror has is the file")
        }
        if version.isJoined, !isJoinable {
            throw TransferError(.remoteChanged, "what several servers brought has no digest any more")
        }
        guard known == nil else { return destination }
        let isKept = try settle(in: target)
        task.setTarget(target)
        if !isKept {
            throw TransferError(.remoteChanged, "the part file lies on another file system than its destination")
        }
        return destination
    }

    /// Whether the destination itself knows a digest of the file, or of its pieces.
    func isDigestKnown() throws(TransferError) -> Bool {
        guard let target else { return false }
        let destination = try target.destination(ResourceMetadata(nil, version))
        return destination.digest != nil || destination.pieces != nil
    }

    /// What is stated of the version that answers. What was stated before holds on for it, though it is not said again.
    private func stated(_ metadata: ResourceMetadata) -> FileDigest? {
        let tag = (metadata.head?.validator ?? version.validator).strongEntityTag
        if let digest = metadata.head?.representationDigest ?? version.digest {
            task.setStated(StatedDigest(digest: digest, entityTag: tag))
            return digest
        }
        guard let known = task.stated, known.entityTag == tag, tag != nil || !task.mismatches.isEmpty else {
            return nil
        }
        return known.digest
    }

    private func takeShare(of target: DownloadTarget, total: Int64?) throws(TransferError) {
        guard let share = target.share, let total else { return }
        do throws(TransferError) {
            try share.take(max(total, count))
            allowed = share.held
        } catch {
            // Whoever tries again knows then whether it fits.
            task.progress.setTotal(total)
            throw error
        }
    }

    /// - Parameter missing: bytes that are yet to come, where known.
    private func checkSpace(in target: DownloadTarget, for missing: Int64?) throws(TransferError) {
        let needed = missing ?? 1
        guard needed > 0, let free = target.directory.freeSpace() else { return }
        let others = noteNeed(of: missing, on: target.directory.device)
        let room = free - target.reservedSpace - others
        if needed <= room { return }
        // A part of no use any more makes way.
        if part == nil, needed <= room + target.directory.allocatedSpace(of: target.partName) { return }
        forgetNeed()
        let wanted = missing.map { "\($0) bytes more" } ?? "more"
        let reason = others > 0 ? ", with what other downloads have yet to write there" : ""
        throw TransferError(.diskFull, "\(target.directory.path) has no room for \(wanted)\(reason)")
    }

    /// - Returns: bytes that are promised to others. Whoever is under way already does not wait for them, lest all wait
    ///   for each other.
    private func noteNeed(of missing: Int64?, on device: UInt64) -> Int64 {
        guard let missing else { return 0 }
        let others = task.session.spaceNeeds.note(missing, of: task.identifier, on: device)
        defer { needsOn = device }
        return needsOn == nil ? others : 0
    }

    /// What it has yet to write is not to come.
    func forgetNeed() {
        if let needsOn { task.session.spaceNeeds.forget(task.identifier, on: needsOn) }
        needsOn = nil
    }

    /// Makes sure that others have not used up the room meanwhile.
    func checkSpace() throws(TransferError) {
        if let target { try checkSpace(in: target, for: version.total.map { $0 - count }) }
    }

    /// Asks the destination, once in a task's life: for what goes on with a part of an earlier one's, the part goes
    /// along and keeps its owner.
    private func decide(_ metadata: ResourceMetadata, total: Int64?) throws(TransferError) -> DownloadTarget {
        guard case .decided(let destination) = task.placement else {
            throw TransferError(.internal, "a download without a place")
        }
        let earlier = task.resumeData?.record?.decision
        var decision = try destination.decide(
            DownloadDestination.Occasion(
                head: metadata.head, suggestedFileName: metadata.suggestedFileName, url: task.originalRequest.url,
                size: total, earlier: earlier))
        let directory = try decision.open()
        if let earlier {
            decision.owner = earlier.owner
            let isHere = part.map { $0.directory.isSame(as: directory) }
            if isHere ?? (earlier.directory == decision.directory) {
                decision.partName = earlier.partName
            } else if isHere == nil {
                // Its bytes count no longer, and nobody would find it again.
                _ = try? task.resumeData?.discard()
            }
        }
        return decision.target(in: directory)
    }
}
