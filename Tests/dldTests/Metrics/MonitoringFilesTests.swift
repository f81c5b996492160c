import FoundationEssentials
import Testing

@testable import dld

/// The dashboard and the alert rules in `config`.
@Suite("The files for monitoring")
struct MonitoringFilesTests {
    private func text(of name: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return String(decoding: try Data(contentsOf: root.appending(path: "config/\(name)")), as: UTF8.self)
    }

    /// The names of all series, those of histograms included.
    private var series: Set<String> {
        Set(
            MetricFamily.all.flatMap { family in
                family.kind == .histogram
                    ? ["_bucket", "_sum", "_count"].map { family.name + $0 } : [family.name]
            })
    }

    private func names(in text: String) -> Set<String> {
        Set(text.matches(of: /\bdld_[a-z0-9_]+/).map { String($0.output) })
    }

    @Test("each metric that they name exists", arguments: ["grafana-dashboard.json", "alerts.yaml"])
    func names(file: String) throws {
        let found = names(in: try text(of: file))
        #expect(!found.isEmpty)
        #expect(found.subtracting(series) == [], "\(file)")
    }

    @Test("the dashboard shows every metric, from a data source that can be chosen")
    func dashboard() throws {
        let text = try text(of: "grafana-dashboard.json")
        let found = names(in: text)
        for family in MetricFamily.all {
            #expect(found.contains(family.name) || found.contains(family.name + "_bucket"), "\(family.name)")
        }
        let dashboard = try JSONDecoder().decode(Dashboard.self, from: Data(text.utf8))
        #expect(dashboard.templating.list.contains { $0.type == "datasource" })
        #expect(dashboard.panels.allSatisfy { $0.type == "row" || $0.datasource?.uid == "${datasource}" })
    }

    private struct Dashboard: Decodable {
        struct Panel: Decodable {
            struct Source: Decodable { var uid: String }
            var type: String
            var datasource: Source?
        }
        struct Templating: Decodable {
            struct Variable: Decodable { var type: String }
            var list: [Variable]
        }
        var panels: [Panel]
        var templating: Templating
    }
}
