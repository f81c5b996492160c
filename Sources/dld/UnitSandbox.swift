import CSystemd
import TaskQueue

/// What the unit of the service lets the daemon see and write (systemd.exec(5)), as systemd's manager tells it.
struct UnitSandbox {
    let unit: String
    /// Of the unit's `StateDirectory=`.
    let stateDirectory: String?
    private let protectsSystem: String
    private let protectsHome: String
    private let hasPrivateTemporaryFiles: Bool
    /// Where it may write although the rest is read-only.
    private let writable: [String]
    /// Where other directories are shown, for reading and for writing.
    private let bound: [String]
    private let boundForReading: [String]

    /// - Returns: `nil` where there is no such unit, or nobody to ask about it.
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

    /// - Returns: `nil` where the unit is not in the way.
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
            return "PrivateTmp=yes hides \(path) from \(unit); name a directory outside of /tmp and /var/tmp"
        }
        guard !use.isOfReading, !isBound, !PlaceInspector.lies(path, beneath: writable), isReadOnly(path) else {
            return nil
        }
        return "\(path) is read-only for \(unit) (ProtectSystem=\(protectsSystem)); "
            + PlaceInspector.dropIn(["ReadWritePaths=-\(path)"], unit: unit)
    }

    private func isReadOnly(_ path: String) -> Bool {
        switch protectsSystem {
        // The file systems of the kernel's interfaces stay as they are.
        case "strict": return !PlaceInspector.lies(path, beneath: ["/dev", "/proc", "/sys"])
        case "full": return PlaceInspector.lies(path, beneath: ["/usr", "/boot", "/efi", "/etc"])
        case "yes": return PlaceInspector.lies(path, beneath: ["/usr", "/boot", "/efi"])
        default: return PlaceInspector.isHidden(path) && protectsHome == "read-only"
        }
    }
}
