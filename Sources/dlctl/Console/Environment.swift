import FoundationEssentials

/// The process's environment.
enum Environment {
    static var variables: [String: String] { ProcessInfo.processInfo.environment }
}
