import Glibc
import TaskModel
import TaskStore
import Transfer

/// Validates a requested task against the daemon's settings and converts it into the form that the store accepts.
struct Admission {
    let settings: QueueSettings
    let caller: Caller
    let now: Milliseconds
    /// The place of the previous task. It is cached, since consecutive tasks usually have the same one.
    private var last: (directory: String?, place: DownloadPlace)?
    /// The distinct places of the downloads admitted so far, each with the index of its first task.
    private(set) var places: [PlacedTask] = []
    private var known: Set<DownloadPlace> = []
    private var admitted = 0
    /// Warnings about contents of the tasks admitted so far that are passed over, without repetitions.
    private(set) var notes: [String] = []
    /// The open files that are the sources of the tasks admitted so far.
    private(set) var passed: [PassedTask] = []

    /// A task with the open file that is its source.
    struct PassedTask: Sendable {
        var name: String
        var file: PassedFile
        /// The task's index in the list of requested tasks.
        var index: Int
    }

    struct PlacedTask: Sendable {
        var place: DownloadPlace
        /// The task's owner.
        var user: UserIdentity
        var index: Int
    }
    /// The host of the previous task and its key, cached for the same reason as `last`.
    private var lastHost: (scheme: String, host: String, port: Int, key: String)?

    /// The cookies of the previous task.
    private var lastCookies: String?
    /// The maximum number of warnings about one request.
    private static let maximumNotes = 32

    /// Whether a task exists that the caller may see.
    private let knows: (TaskID) -> Bool

    init(
        settings: QueueSettings, caller: Caller, now: Milliseconds, knows: @escaping (TaskID) -> Bool = { _ in true }
    ) {
        self.settings = settings
        self.knows = knows
        self.caller = caller
        self.now = now
    }

    /// Validates a new task.
    ///
    /// - Throws: ``FieldError`` with the JSON name of the invalid field.
    mutating func admit(_ asked: consuming TaskSpecification) throws(FieldError) -> NewTask {
        defer { admitted += 1 }
        var specification = asked
        let address = try Self.validate(specification)
        if let cookies = specification.cookies { try check(cookies: cookies) }
        if specification.insecure { add(note: Self.insecurity) }
        let path: String
        switch specification.kind {
        case .download:
            try settleDirectory(&specification, owner: caller.uid)
            path = try destination(specification, owner: caller.uid)
        case .upload:
            path = specification.file ?? ""
            try settleSource(&specification)
            recordGroups(&specification)
        }
        if let id = specification.afterTask, !knows(id) {
            throw FieldError(field: "afterTask", code: .unknownTask, message: "there is no task \(id)")
        }
        let lifecycle = TaskLifecycle(
            paused: specification.paused, follows: specification.afterTask != nil, startAt: specification.startAt,
            now: now)
        let secrets = specification.takeSecrets(redactedURL: address.redacted)
        return NewTask(
            specification: specification, secrets: secrets, owner: caller.uid, host: hostKey(of: address),
            lifecycle: lifecycle, path: path)
    }

    /// Validates cookies. Tasks that are added together mostly have the same.
    private mutating func check(cookies: String) throws(FieldError) {
        guard cookies != lastCookies else { return }
        let bad = try TaskCookies.check(cookies)
        lastCookies = cookies
        for note in TaskCookies.notes(ofBadLines: bad) { add(note: note) }
    }

    private static let insecurity =
        "insecure: the certificates of servers are not verified, except of hosts for which the configuration has "
        + "\"trust\""

    private mutating func add(note: String) {
        if !notes.contains(note), notes.count < Self.maximumNotes { notes.append(note) }
    }

    private mutating func hostKey(of address: TaskAddress) -> String {
        if let last = lastHost, last.host == address.host, last.port == address.port, last.scheme == address.scheme {
            return last.key
        }
        let key = address.hostKey
        lastHost = (address.scheme, address.host, address.port, key)
        return key
    }

    /// Validates the changed options of an existing task.
    ///
    /// - Parameters:
    ///   - asked: the new options, including secrets.
    ///   - before: the previous options, including secrets.
    ///   - names: Whether the file's directory or name may change.
    ///   - owner: the uid of the task's owner.
    mutating func readmit(
        _ asked: TaskSpecification, after before: TaskSpecification, names: Bool, owner: UInt32
    ) throws(FieldError) -> NewTask {
        var specification = asked
        if asked.kind == .upload, asked.url != before.url, !asked.isForm {
            guard UploadPlace(asked.url) != .directoryWithQuery else {
                throw FieldError(
                    field: "url",
                    message: "ends in / before its query or fragment; give the name of the file before it")
            }
            specification.appendUploadName()
        }
        let address = try Self.validate(specification)
        try checkSecrets(asked, before, address, owner: owner)
        if asked.cookies != before.cookies, let cookies = asked.cookies { try check(cookies: cookies) }
        if asked.kind == .download, asked.directory != before.directory {
            try settleDirectory(&specification, owner: owner)
        }
        let path = names && asked.kind == .download ? try destination(specification, owner: owner) : nil
        let secrets = specification.takeSecrets(redactedURL: address.redacted)
        return NewTask(
            specification: specification, secrets: secrets, owner: owner, host: address.hostKey,
            lifecycle: TaskLifecycle(), path: path)
    }

    /// Refuses changes to another user's task that would send its owner's secrets to another host or store its file in
    /// another place. A caller who is not trusted cannot have known those secrets. Root and the daemon's own user are
    /// exempt.
    private func checkSecrets(
        _ asked: TaskSpecification, _ before: TaskSpecification, _ address: TaskAddress, owner: UInt32
    ) throws(FieldError) {
        guard owner != caller.uid, !settings.isTrusted(caller.uid) else { return }
        try checkContent(asked, before)
        try checkName(asked, before)
        let keepsSecrets = Self.keepsSecrets(asked, before)
        let hasKey = settings.isTrusted(owner)
        // A redirect or a mirror can lead the task to any host of which the configuration has a credential.
        let hasAccess = settings.hostAccess.contains { HostAccess.prefers(owner, to: caller.uid, by: $0) }
        if hasAccess, asked.url != before.url || asked.mirrors != before.mirrors {
            throw FieldError(
                field: asked.url != before.url ? "url" : "mirrors", code: .permissionDenied,
                message: "cannot be changed for another user's task: it could lead the task to a host which gets a "
                    + "credential that the configuration gives to the task's owner and not to you")
        }
        let ofOwners = [
            ("proxy", asked.proxy != before.proxy), ("directory", asked.directory != before.directory),
            ("caCertificates", asked.caCertificates != before.caCertificates),
            ("checksumURL", asked.checksumURL != before.checksumURL),
        ]
        if keepsSecrets || hasKey || hasAccess, let field = ofOwners.first(where: \.1)?.0 {
            throw FieldError(
                field: field, code: .permissionDenied,
                message: "cannot be changed for another user's task if its owner's header fields, cookies, password or "
                    + "permissions are used to transfer the file")
        }
        if keepsSecrets || hasAccess, asked.insecure, !before.insecure {
            throw FieldError(
                field: "insecure", code: .permissionDenied,
                message: "cannot be set for another user's task that sends its owner's header fields or password")
        }
        func check(_ address: TaskAddress, field: String, goesTo known: Set<String>) throws(FieldError) {
            let carries = keepsSecrets || (hasKey && address.scheme == "sftp")
            guard carries, !known.contains(address.hostKey) else { return }
            throw FieldError(
                field: field, code: .permissionDenied,
                message:
                    "may not name another host: the task would send it header fields, cookies, a form, a password, a "
                    + "proxy's login or a key that its owner gave for the present host"
            )
        }
        let own = try TaskAddress(parsing: before.url).hostKey
        try check(address, field: "url", goesTo: [own])
        guard asked.mirrors != before.mirrors else { return }
        var known: Set<String> = [own, address.hostKey]
        for mirror in before.mirrors { known.insert(try TaskAddress(parsing: mirror).hostKey) }
        for (index, mirror) in asked.mirrors.enumerated() {
            let field = "mirrors[\(index)]"
            try check(try TaskAddress(parsing: mirror, field: field), field: field, goesTo: known)
        }
    }

    /// Refuses to change the destination or the credentials of another user's upload, unless the caller may upload the
    /// file too.
    private func checkContent(_ asked: TaskSpecification, _ before: TaskSpecification) throws(FieldError) {
        guard before.kind == .upload else { return }
        let changes: [(String, Bool)] = [
            ("url", asked.url != before.url), ("user", asked.user != before.user),
            ("password", asked.password != before.password), ("headers", asked.headers != before.headers),
            ("proxy", asked.proxy != before.proxy), ("cookies", asked.cookies != before.cookies),
            ("netrc", asked.netrc != before.netrc), ("caCertificates", asked.caCertificates != before.caCertificates),
            ("insecure", asked.insecure && !before.insecure),
        ]
        guard let field = changes.first(where: \.1)?.0 else { return }
        let permission = UploadPermission(settings: settings, user: caller.identity)
        do throws(TransferError) {
            _ = try permission.open(before.file ?? "")
        } catch {
            throw FieldError(
                field: field, code: .permissionDenied,
                message:
                    "may be changed only by a user who may upload the file, because the upload belongs to another user")
        }
    }

    /// Refuses to change the name of another user's download. The file is stored with the owner's permissions and may
    /// overwrite the owner's files, so only the owner chooses its name.
    private func checkName(_ asked: TaskSpecification, _ before: TaskSpecification) throws(FieldError) {
        guard before.kind == .download else { return }
        func refuse(_ field: String, _ message: String) -> FieldError {
            FieldError(field: field, code: .permissionDenied, message: message)
        }
        let ofName = [
            ("output", asked.output != before.output), ("onConflict", asked.onConflict != before.onConflict),
            ("nameFrom", asked.nameFrom != before.nameFrom),
        ]
        if let field = ofName.first(where: \.1)?.0 {
            throw refuse(field, "of another user's task can be changed by its owner only")
        }
        let mayReplace = (asked.onConflict ?? settings.onConflict) == .overwrite
        if mayReplace, asked.output == nil, asked.url != before.url || asked.mirrors != before.mirrors {
            throw refuse(
                asked.url != before.url ? "url" : "mirrors",
                "of another user's task that may overwrite files can be changed by its owner only")
        }
    }

    /// Whether a changed task still has secrets that identify its owner to a server.
    private static func keepsSecrets(_ asked: TaskSpecification, _ before: TaskSpecification) -> Bool {
        let keepsUser = before.user != nil && asked.user == before.user
        let keepsPassword = before.password != nil && asked.password == before.password
        let keepsHeaders = !before.headers.isEmpty && asked.headers == before.headers
        let keepsProxy = before.proxy != nil && asked.proxy == before.proxy
        let keepsCookies = before.cookies != nil && asked.cookies == before.cookies
        let keepsLogins = before.netrc != nil && asked.netrc == before.netrc
        // A form cannot be changed, so the task keeps it.
        let keepsRest = !before.form.isEmpty || keepsCookies || keepsLogins || keepsProxy
        let redacted = try? TaskAddress(parsing: before.url).redacted
        let keepsURL = asked.url == before.url && redacted != before.url
        return keepsURL || keepsUser || keepsPassword || keepsHeaders || keepsRest
    }

    /// Validates the options that need no settings.
    ///
    /// - Returns: the parsed URL.
    private static func validate(_ specification: TaskSpecification) throws(FieldError) -> TaskAddress {
        let address = try specification.check()
        // A directory on a file server is a list of names, not a file.
        if address.namesDirectory {
            let deed = specification.kind == .download ? "fetches" : "stores"
            throw FieldError(
                field: "url", message: "names a directory; \(address.scheme) \(deed) files only: name a file in it")
        }
        return address
    }

    /// Returns the expected path of a download, as far as it is known before the first response.
    private mutating func destination(
        _ specification: TaskSpecification, owner: UInt32
    ) throws(FieldError) -> String {
        try place(specification.directory, owner: owner).path(of: specification.expectedName)
    }

    /// Replaces the directory by its final form, which also encodes whether it is the owner's own or a common
    /// directory.
    private func settleDirectory(_ specification: inout TaskSpecification, owner: UInt32) throws(FieldError) {
        specification.directory = try DownloadPlace.settled(
            specification.directory, isShared: specification.shared, owner: owner, settings: settings)
        if specification.shared { specification.shared = false }
        if owner == caller.uid, !DownloadPlace.isOwn(specification.directory) { recordGroups(&specification) }
    }

    /// Records the caller's groups, with which each run checks the owner's permissions anew.
    private func recordGroups(_ specification: inout TaskSpecification) {
        if !settings.isTrusted(caller.uid) { specification.groups = caller.groups.sorted() }
    }

    private mutating func place(_ directory: String?, owner: UInt32) throws(FieldError) -> DownloadPlace {
        if let last, last.directory == directory { return last.place }
        let place = try DownloadPlace(directory: directory, owner: owner, settings: settings)
        last = (directory, place)
        if known.insert(place).inserted {
            places.append(PlacedTask(place: place, user: caller.identity, index: admitted))
        }
        return place
    }

    /// Validates the source of an upload. Where the path is not accessible to the caller, the open file that the caller
    /// passed becomes the source.
    private mutating func settleSource(_ specification: inout TaskSpecification) throws(FieldError) {
        let descriptor = specification.descriptor
        specification.descriptor = nil
        do throws(TransferError) {
            _ = try UploadPermission(settings: settings, user: caller.identity).open(specification.file ?? "")
        } catch {
            guard let descriptor else {
                throw FieldError(
                    field: "file", code: error.code == .permissionDenied ? .permissionDenied : .invalid,
                    message: error.message)
            }
            let name = PassedSources.makeName()
            passed.append(PassedTask(name: name, file: try passedFile(at: descriptor), index: admitted))
            specification.passedSource = name
        }
    }

    /// Returns the open file that the caller passed at the given index.
    func passedFile(at index: Int) throws(FieldError) -> PassedFile {
        guard let entry = caller.files?.file(at: index) else {
            throw FieldError(field: "descriptor", message: "is not one of the files of the last source.receive")
        }
        let isTrusted = settings.isTrusted(caller.uid)
        let file: PassedFile
        do throws(PassedFile.Unfitness) {
            file = try entry.get()
            try file.check(isTrusted: isTrusted)
        } catch {
            throw FieldError(field: "descriptor", message: Self.message(error))
        }
        guard isTrusted || file.parent.map({ !settings.protectedPlaces.inodes.contains($0) }) ?? true else {
            throw FieldError(
                field: "descriptor", code: .permissionDenied,
                message: "is in a directory of the daemon itself, from which nothing is uploaded")
        }
        return file
    }

    private static func message(_ unfitness: PassedFile.Unfitness) -> String {
        switch unfitness {
        case .notRegular: "is not a regular file"
        case .notReadable: "is not open for reading"
        case .direct: "is open with O_DIRECT, which the daemon cannot read; open it without"
        case .onAnotherMachine:
            "is on a network file system or FUSE, which could keep the daemon waiting: upload a copy on a local disk"
        case .system(let errno): "cannot be used: \(String(cString: strerror(errno)))"
        }
    }
}
