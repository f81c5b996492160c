/// The placement of a download's file after the head of its response was validated.
extension DownloadFile {
    /// Determines the file's destination and checks that it has enough space.
    ///
    /// - Parameters:
    ///   - total: the size of the whole file in bytes, if known.
    ///   - ofMirror: whether the response is from another server than the one in the request's URL.
    /// - Throws: an error if the file cannot be placed there. This includes an existing file if the conflict policy is
    ///   to skip it, and `remoteChanged` if the existing part cannot be moved to the destination.
    func place(_ metadata: ResourceMetadata, total: Int64?, ofMirror: Bool = false) throws(TransferError)
        -> FileDestination
    {
        let known = target
        let target = if let known { known } else { try decide(metadata, total: total) }
        // Check the size first: a file that can never fit would wait for space for ever.
        let room = target.directory.room
        if let total { try target.directory.check(canHold: total, of: room?.total) }
        try reserveSpace(of: target, total: total)
        try checkSpace(in: target, for: total.map { $0 - count }, free: room?.free)
        var destination = try target.destination(metadata)
        if destination.keepsCurrentFile {
            try compareVersion(metadata, total: total, &destination, in: target.directory)
        }
        if case .skip = destination.conflict, target.directory.contains(destination.name),
            target.directory.publishedSize(of: destination.name, by: target.owner) == nil
        {
            throw .taken(destination, in: target.directory)
        }
        if case .overwrite = destination.conflict, target.directory.isDirectory(destination.name) {
            throw TransferError(.nameConflict, "\(target.directory.path(of: destination.name)) is a directory")
        }
        let isCoded = metadata.head.map { !$0.contentCodings.isEmpty } ?? false
        if let total, !isCoded { try destination.check(size: total) }
        isChecked = destination.pieces != nil
        let isStandIn = ofMirror && !task.mismatches.isEmpty
        expect(destination.digest, stated: isStandIn ? task.stated?.digest : stated(metadata))
        if isStandIn, !isJoinable {
            throw TransferError(.checksumMismatch, "nothing confirms that the mirror's file is the same")
        }
        if version.isJoined, !isJoinable {
            throw TransferError(
                .remoteChanged,
                "the part has bytes of several servers, and the digest to check them with is no longer known")
        }
        guard known == nil else { return destination }
        let isKept = try settle(in: target)
        task.setTarget(target)
        if !isKept {
            throw TransferError(.remoteChanged, "the part file is on another file system than its destination")
        }
        return destination
    }

    /// Compares the version of the response with that of the file that has the name.
    ///
    /// - Throws: the error by which the download completes with that file, if it is of the same version.
    private func compareVersion(
        _ metadata: ResourceMetadata, total: Int64?, _ destination: inout FileDestination, in directory: Directory
    ) throws(TransferError) {
        let url = task.originalRequest.url
        let validator = metadata.head?.validator ?? version.validator
        let shown = FileVersion(size: total, url: url, validator)
        if let known = directory.version(of: destination.name, from: url), known.isShown(by: validator, total: total) {
            if !known.isRecorded { directory.record(shown, of: destination.name) }
            throw .taken(destination, in: directory)
        }
        destination.version = shown
    }

    /// Returns the error by which the download completes with the file that is there, because a response says that the
    /// server has no other version (304); `nil` where the destination does not ask for this.
    func current() -> TransferError? {
        guard let target else { return nil }
        do throws(TransferError) {
            let destination = try target.destination(ResourceMetadata(nil, version))
            return destination.keepsCurrentFile ? TransferError.taken(destination, in: target.directory) : nil
        } catch {
            return error
        }
    }

    /// Whether the destination itself provides a digest of the file or of its pieces.
    func isDigestKnown() throws(TransferError) -> Bool {
        guard let target else { return false }
        let destination = try target.destination(ResourceMetadata(nil, version))
        return destination.digest != nil || destination.pieces != nil
    }

    /// Returns the digest stated for the version of the response. A digest stated earlier for the same version remains
    /// valid if the response does not repeat it.
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

    private func reserveSpace(of target: DownloadTarget, total: Int64?) throws(TransferError) {
        guard let share = target.share, let total else { return }
        do throws(TransferError) {
            try share.reserve(max(total, count))
            allowed = share.held
        } catch {
            // A retry uses the total to determine whether the file fits.
            task.progress.setTotal(total)
            throw error
        }
    }

    /// Checks that the file system has enough free space.
    ///
    /// - Parameters:
    ///   - missing: the number of bytes still to be received, if known.
    ///   - free: the free space of the file system in bytes, if known.
    private func checkSpace(in target: DownloadTarget, for missing: Int64?, free: Int64?) throws(TransferError) {
        let needed = missing ?? 1
        guard needed > 0, let free else { return }
        let others = recordNeed(of: missing, on: target.directory.device)
        let room = free - target.reservedSpace - others
        if needed <= room { return }
        // A part file that is no longer usable is replaced, so its space becomes free.
        if part == nil, needed <= room + target.directory.allocatedSpace(of: target.partName) { return }
        forgetNeed()
        let wanted = missing.map { "\($0) bytes more" } ?? "more"
        let reason = others > 0 ? ", including the bytes that other downloads have yet to write there" : ""
        throw TransferError(.diskFull, "\(target.directory.path) has no room for \(wanted)\(reason)")
    }

    /// Records the space that this download still needs.
    ///
    /// - Returns: the number of bytes needed by other downloads. It is 0 if this download was recorded before: running
    ///   downloads must not wait for each other.
    private func recordNeed(of missing: Int64?, on device: UInt64) -> Int64 {
        guard let missing else { return 0 }
        let others = task.session.resources.spaceNeeds.record(missing, of: task.identifier, on: device)
        defer { needsOn = device }
        return needsOn == nil ? others : 0
    }

    /// Removes the recorded space requirement of this download.
    func forgetNeed() {
        if let needsOn { task.session.resources.spaceNeeds.forget(task.identifier, on: needsOn) }
        needsOn = nil
    }

    /// Checks that other writers have not used up the space in the meantime.
    func checkSpace() throws(TransferError) {
        guard let target else { return }
        try checkSpace(in: target, for: version.total.map { $0 - count }, free: target.directory.freeSpace())
    }

    /// Asks the destination for its decision, once in the lifetime of a task. If the task resumes the part of an
    /// earlier task, the part is moved to the destination and keeps its owner.
    private func decide(_ metadata: ResourceMetadata, total: Int64?) throws(TransferError) -> DownloadTarget {
        guard case .decided(let destination) = task.placement else {
            throw TransferError(.internal, "a download without a place")
        }
        let earlier = task.resumeData?.record?.decision
        var decision = try destination.decide(
            DownloadDestination.Occasion(
                head: metadata.head, suggestedFileName: metadata.suggestedFileName,
                redirectedFileName: metadata.redirectedFileName, url: task.originalRequest.url,
                size: total, earlier: earlier))
        let directory = try decision.open()
        if let earlier {
            decision.owner = earlier.owner
            let isHere = part.map { $0.directory.isSame(as: directory) }
            if isHere ?? (earlier.directory == decision.directory) {
                decision.partName = earlier.partName
            } else if isHere == nil {
                // The old part is unusable, and no record refers to it any more.
                _ = try? task.resumeData?.discard()
            }
        }
        return decision.target(in: directory)
    }
}
