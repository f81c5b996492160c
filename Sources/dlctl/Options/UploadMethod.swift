import ArgumentParser

/// The methods of HTTP that an upload may use.
enum UploadMethod: String, CaseIterable, ExpressibleByArgument {
    case put = "PUT"
    case post = "POST"

    init?(argument: String) { self.init(rawValue: argument.uppercased()) }
}
