import CSystemd
import TaskQueue

/// The restrictions of the service's unit on the files that the daemon can see and write (systemd.exec(5)), as reported
/// by systemd's manager.
struct UnitSandbox {
    let unit: String
    /// The directory of the unit's `StateDirectory=`.
    let stateDirectory: String?
    private let protectsSystem: String
    private let protectsHome: String
    private let hasPrivateTemporaryFiles: Bool
    /// The directories that are writable although the rest is read-only.
    private let writable: [String]
    /// The destinations of bind mounts, writable ones and read-only ones.
    private let bound: [String]
    private let boundForReading: [String]

    /// - Returns: `nil` if the unit is not loaded, or systemd cannot be queried.
    init?(unit: String) {
        guard let manager = SystemdManager(), manager.text("LoadState", of: unit, in: "Unit") == "loaded" else {
            return nil
        }
        self.unit = unit
        protectsSystem = manager.text("ProtectSystem", of: unit, in: "Service") ?? "no"
        protectsHome = manager.text("ProtectHome", of: unit, in: "Service") ?? "no"
        hasPrivateTemporaryFiles = manager.flag("PrivateTmp", of: unit, in: "Service") ?? false
        let state = manager.list("StateDirectory", of: unit, in: "Service").map { "/var/lib/\($0)" }
        stateDirectory = state.first
        writable =
            state
            + manager.list("ReadWritePaths", of: unit, in: "Service").map { String($0.drop { "-+".contains($0) }) }
        bound = manager.destinations("BindPaths", of: unit, in: "Service")
        boundForReading = manager.destinations("BindReadOnlyPaths", of: unit, in: "Service")
    }

    /// Returns the problem that the unit causes for the use of `path`.
    ///
    /// - Returns: `nil` if there is none.
    func problem(with path: String, for use: PlaceUse) -> String? {
        let isBound = PlaceInspector.lies(path, beneath: bound)
        if PlaceInspector.isHidden(path), ["yes", "tmpfs"].contains(protectsHome), protectsHome == "yes" || !isBound {
            if protectsHome == "tmpfs", use.isOfReading, PlaceInspector.lies(path, beneath: boundForReading) {
                return nil
            }
            return "ProtectHome=\(protectsHome) hides \(path) from \(unit); "
                + PlaceInspector.dropIn(PlaceInspector.showing(path, for: use), unit: unit)
        }
        if hasPrivateTemporaryFiles, PlaceInspector.isTemporary(path), !isBound {
            return PlaceInspector.private(path, unit: unit)
        }
        guard !use.isOfReading, !isBound, !PlaceInspector.lies(path, beneath: writable), isReadOnly(path) else {
            return nil
        }
        return "\(path) is read-only for \(unit) (ProtectSystem=\(protectsSystem)); "
            + PlaceInspector.dropIn(["ReadWritePaths=-\(path)"], unit: unit)
    }

    private func isReadOnly(_ path: String) -> Bool {
        switch protectsSystem {
        // The file systems of kernel interfaces stay as they are.
        case "strict": return !PlaceInspector.lies(path, beneath: ["/dev", "/proc", "/sys"])
        case "full": return PlaceInspector.lies(path, beneath: ["/usr", "/boot", "/efi", "/etc"])
        case "yes": return PlaceInspector.lies(path, beneath: ["/usr", "/boot", "/efi"])
        default: return PlaceInspector.isHidden(path) && protectsHome == "read-only"
        }
    }
}
