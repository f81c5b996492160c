import ArgumentParser
import ControlClient
import ControlProtocol
import FoundationEssentials
import Glibc

struct RPC: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "rpc",
        abstract: "Calls a JSON-RPC method and prints its result as JSON.",
        usage: "dlctl rpc <method> [<params-json>]",
        discussion: """
            If the daemon returns an error, it is printed as JSON on standard error.

            EXAMPLES:
              dlctl rpc daemon.status
              dlctl rpc task.get '{"id":7}'
            """)

    @Argument(help: "The name of the method.")
    var method: String

    @Argument(help: ArgumentHelp("The parameters: a JSON object.", valueName: "params-json"))
    var parameters: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let value = try parameters.map { try Self.parse($0) }
        let client = try context.connect()
        do throws(ClientError) {
            context.output.json(try client.call(method: method, parameters: value))
        } catch .rpc(let answer) {
            let errors = Output(STDERR_FILENO)
            errors.json(answer)
            errors.flush()
            throw Failure.status(of: answer.code)
        }
    }

    /// Parses the parameters of a call.
    ///
    /// - Throws: ``Failure`` if the text is not JSON that the daemon accepts, or is neither an object nor an array.
    static func parse(_ text: String) throws(Failure) -> RPCValue {
        switch JSONScan.fault(in: text.utf8) {
        case nil: break
        case .notJSON: throw notJSON
        case let fault?: throw .usage("params-json: \(fault)", field: "params-json")
        }
        let value: RPCValue
        do {
            value = try JSONDecoder().decode(RPCValue.self, from: Data(text.utf8))
        } catch {
            throw notJSON
        }
        switch value {
        case .object, .array: return value
        default:
            throw .usage("params-json: must be an object such as '{\"id\":7}', or an array", field: "params-json")
        }
    }

    private static let notJSON = Failure.usage(
        "params-json: is not JSON; write an object such as '{\"id\":7}'", field: "params-json")
}
