import TaskModel

/// A line of the list.
enum TopRow: Equatable {
    case host(HostSum)
    case task(TaskStatus)

    /// The identity of a row from one round to the next.
    enum Key: Hashable {
        case host(String)
        case task(TaskID)
    }

    var key: Key {
        switch self {
        case .host(let sum): .host(sum.host)
        case .task(let task): .task(task.id)
        }
    }

    var task: TaskStatus? { if case .task(let task) = self { task } else { nil } }
}

/// The tasks of a host together.
struct HostSum: Equatable {
    var host: String
    var tasks = 0
    var active = 0
    var connections = 0
    var rate: Int64 = 0
    var isCollapsed = false

    /// Returns scheme, host and port of a URL as written.
    static func host(of url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return url }
        let authority = url[start...].prefix { !"/?#".contains($0) }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? authority
        return url[..<start].lowercased() + host.lowercased()
    }
}

extension TopRow {
    /// Returns the rows for tasks, sorted and grouped.
    static func rows(_ tasks: [TaskStatus], sort: TopQuery.Sort, byHost: Bool, collapsed: Set<String>) -> [TopRow] {
        let tasks = sorted(tasks, by: sort)
        guard byHost else { return tasks.map { .task($0) } }
        var sums: [String: HostSum] = [:]
        var members: [String: [TopRow]] = [:]
        for task in tasks {
            let host = HostSum.host(of: task.url)
            var sum = sums[host] ?? HostSum(host: host, isCollapsed: collapsed.contains(host))
            sum.tasks += 1
            if task.state == .active { sum.active += 1 }
            sum.connections = sum.connections.addingClamped(task.connections)
            sum.rate = sum.rate.addingClamped(task.rate ?? 0)
            sums[host] = sum
            if !sum.isCollapsed { members[host, default: []].append(.task(task)) }
        }
        let order = sums.values.sorted {
            sort == .rate && $0.rate != $1.rate ? $0.rate > $1.rate : $0.host < $1.host
        }
        return order.flatMap { [.host($0)] + (members[$0.host] ?? []) }
    }

    /// Returns tasks in an order. Running tasks come first; where values are equal or unknown, the order remains.
    private static func sorted(_ tasks: [TaskStatus], by sort: TopQuery.Sort) -> [TaskStatus] {
        func key(_ task: TaskStatus) -> Int64 {
            switch sort {
            case .start, .name: 0
            case .rate: -(task.rate ?? 0)
            case .left: task.eta ?? .max
            case .size: -(task.bytesTotal ?? 0)
            case .progress: -Int64(task.bytesTotal.flatMap { Describe.percent(task.bytesDone, of: $0) } ?? -1)
            }
        }
        if sort == .start { return tasks }
        // The standard library does not promise a stable order, so the place decides last.
        let keyed = tasks.enumerated().map { index, task in
            (
                isRunning: task.state == .active ? 0 : 1, value: key(task),
                name: sort == .name ? Describe.name(task).lowercased() : "", index: index, task: task
            )
        }
        return keyed.sorted {
            ($0.isRunning, $0.value, $0.name, $0.index) < ($1.isRunning, $1.value, $1.name, $1.index)
        }.map(\.task)
    }
}
