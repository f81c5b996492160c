/// A scheduler of name look-ups for few threads and many questions.
///
/// A thread that waits for a silent name server cannot be interrupted. Three rules keep some threads free for others:
/// - A party holds at most as many threads as remain free besides its own (a dynamic threshold): a single party half of
///   them, the next party half of the rest. For spare names the limit is a third of the free threads.
/// - A task holds a few threads, and spare names never take its last one.
/// - The party that holds the fewest threads comes first, and wanted names come before spare ones.
struct LookupQueue {
    /// The number of a question that was neither answered nor withdrawn.
    typealias Number = Int

    private struct Question {
        var host: String
        var asker: Resolver.Asker
    }

    private struct Lookup {
        /// The questions, in order of arrival.
        var questions: [Number] = []
        /// The asker that the thread counts for; `nil` if no thread looks the name up yet.
        var holder: Resolver.Asker?
    }

    /// The questions of one party and one urgency, by task.
    private struct Line {
        var questions: [Int: [Number]] = [:]
        /// The tasks with questions, the next one first.
        var tasks: [Int] = []

        mutating func add(_ number: Number, of task: Int) {
            if questions[task] == nil { tasks.append(task) }
            questions[task, default: []].append(number)
        }

        mutating func remove(_ number: Number, of task: Int) {
            questions[task]?.removeAll { $0 == number }
            guard questions[task]?.isEmpty == true else { return }
            questions[task] = nil
            if let index = tasks.firstIndex(of: task) { tasks.remove(at: index) }
        }

        /// Returns the next question of a task that may start a look-up. The task's other questions wait until the
        /// other tasks have had a turn.
        mutating func next(where mayAsk: (_ task: Int) -> Bool) -> Number? {
            guard let index = tasks.firstIndex(where: mayAsk) else { return nil }
            let task = tasks.remove(at: index)
            tasks.append(task)
            return questions[task]?.first
        }
    }

    private struct Party {
        var wanted = Line()
        var spare = Line()
        /// The number of threads that the party holds.
        var held = 0
        /// The turn of the party's latest look-up.
        var turn = 0

        subscript(_ urgency: Resolver.Urgency) -> Line {
            get { urgency == .wanted ? wanted : spare }
            _modify { if urgency == .wanted { yield &wanted } else { yield &spare } }
        }

        var isEmpty: Bool { held == 0 && wanted.questions.isEmpty && spare.questions.isEmpty }
    }

    /// The most threads that one task holds.
    static let limitOfTask = 4

    private let threads: Int
    private var held = 0
    private var heldByTask: [Int: Int] = [:]
    private var questions: [Number: Question] = [:]
    private var lookups: [String: Lookup] = [:]
    private var parties: [String?: Party] = [:]
    private var turns = 0

    init(threads: Int) { self.threads = threads }

    /// The number of questions that wait for a thread or an answer.
    var count: Int { questions.count }

    /// - Parameter number: a number that no other question has.
    mutating func add(_ number: Number, host: String, for asker: Resolver.Asker) {
        questions[number] = Question(host: host, asker: asker)
        lookups[host, default: Lookup()].questions.append(number)
        if lookups[host]?.holder == nil {
            parties[asker.party, default: Party()][asker.urgency].add(number, of: asker.task)
        }
    }

    /// Removes a question. If no other question waits for its look-up, and that has not started, it is dropped.
    mutating func withdraw(_ number: Number) {
        guard let question = questions.removeValue(forKey: number) else { return }
        lookups[question.host]?.questions.removeAll { $0 == number }
        guard lookups[question.host]?.holder == nil else { return }
        unregisterLine(number, question.asker)
        if lookups[question.host]?.questions.isEmpty == true { lookups[question.host] = nil }
    }

    /// - Returns: the name that a thread is to look up now, followed by ``finish(_:)``; `nil` if no look-up may start.
    mutating func next() -> String? {
        guard held < threads, let number = pick(), let question = questions[number],
            let waiting = lookups[question.host]?.questions
        else { return nil }
        let asker = question.asker
        for number in waiting {
            if let asker = questions[number]?.asker { unregisterLine(number, asker) }
        }
        lookups[question.host]?.holder = asker
        held += 1
        heldByTask[asker.task, default: 0] += 1
        turns += 1
        parties[asker.party, default: Party()].held += 1
        parties[asker.party]?.turn = turns
        return question.host
    }

    /// Records that a look-up has completed.
    ///
    /// - Returns: the questions that it answers.
    mutating func finish(_ host: String) -> [Number] {
        guard let lookup = lookups.removeValue(forKey: host) else { return [] }
        for number in lookup.questions { questions[number] = nil }
        guard let asker = lookup.holder else { return lookup.questions }
        held -= 1
        heldByTask[asker.task, default: 1] -= 1
        if heldByTask[asker.task] == 0 { heldByTask[asker.task] = nil }
        parties[asker.party]?.held -= 1
        dropIfEmpty(asker.party)
        return lookup.questions
    }

    private mutating func pick() -> Number? {
        let free = threads - held
        let heldByTask = heldByTask
        // The number of parties is small: it is that of the parties with look-ups at this moment.
        let order = parties.sorted { ($0.value.held, $0.value.turn) < ($1.value.held, $1.value.turn) }.map(\.key)
        for urgency in [Resolver.Urgency.wanted, .spare] {
            let (share, limit) = urgency == .wanted ? (1, Self.limitOfTask) : (3, Self.limitOfTask - 1)
            for party in order {
                guard let held = parties[party]?.held, held * share < free else { continue }
                let number = parties[party]?[urgency].next { heldByTask[$0, default: 0] < limit }
                if let number { return number }
            }
        }
        return nil
    }

    private mutating func unregisterLine(_ number: Number, _ asker: Resolver.Asker) {
        parties[asker.party]?[asker.urgency].remove(number, of: asker.task)
        dropIfEmpty(asker.party)
    }

    private mutating func dropIfEmpty(_ party: String?) {
        if parties[party]?.isEmpty == true { parties[party] = nil }
    }
}
