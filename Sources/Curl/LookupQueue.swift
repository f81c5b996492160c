/// Which names are looked up next, where threads are few and questions are many.
///
/// A thread that asks a silent name server cannot be called back. Three rules keep some free for the others:
/// - A party holds at most as many threads as stay free beside hers (a dynamic threshold): one alone half of them, the
///   next half of the rest. For spare names it is a third of what stays free.
/// - One task holds a few threads, and spare names never its last one.
/// - Whoever holds the fewest threads comes first, and wanted names come before spare ones.
struct LookupQueue {
    /// A question that was put and not answered or withdrawn.
    typealias Number = Int

    private struct Question {
        var host: String
        var asker: Resolver.Asker
    }

    private struct Lookup {
        /// In the order in which they came.
        var questions: [Number] = []
        /// Whom the thread counts for; `nil` where none looks the name up yet.
        var holder: Resolver.Asker?
    }

    /// The questions of one party and one urgency, by task.
    private struct Line {
        var questions: [Int: [Number]] = [:]
        /// The next one first.
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

        /// The next question of a task that may ask; its other questions wait until the other tasks have had a turn.
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
        /// Threads.
        var held = 0
        /// Since when it has waited for its turn, in turns.
        var turn = 0

        subscript(_ urgency: Resolver.Urgency) -> Line {
            get { urgency == .wanted ? wanted : spare }
            _modify { if urgency == .wanted { yield &wanted } else { yield &spare } }
        }

        var isEmpty: Bool { held == 0 && wanted.questions.isEmpty && spare.questions.isEmpty }
    }

    /// Threads that one task holds at most.
    static let limitOfTask = 4

    private let threads: Int
    private var held = 0
    private var heldByTask: [Int: Int] = [:]
    private var questions: [Number: Question] = [:]
    private var lookups: [String: Lookup] = [:]
    private var parties: [String?: Party] = [:]
    private var turns = 0

    init(threads: Int) { self.threads = threads }

    /// Questions that wait for a thread or an answer.
    var count: Int { questions.count }

    /// - Parameter number: no other question's.
    mutating func add(_ number: Number, host: String, for asker: Resolver.Asker) {
        questions[number] = Question(host: host, asker: asker)
        lookups[host, default: Lookup()].questions.append(number)
        if lookups[host]?.holder == nil {
            parties[asker.party, default: Party()][asker.urgency].add(number, of: asker.task)
        }
    }

    /// Nobody waits for the answer any more: a look-up that has not begun is dropped.
    mutating func withdraw(_ number: Number) {
        guard let question = questions.removeValue(forKey: number) else { return }
        lookups[question.host]?.questions.removeAll { $0 == number }
        guard lookups[question.host]?.holder == nil else { return }
        leaveLine(number, question.asker)
        if lookups[question.host]?.questions.isEmpty == true { lookups[question.host] = nil }
    }

    /// - Returns: the name that a thread is to look up now, ``finish(_:)`` follows; `nil` where none may.
    mutating func next() -> String? {
        guard held < threads, let number = pick(), let question = questions[number],
            let waiting = lookups[question.host]?.questions
        else { return nil }
        let asker = question.asker
        for number in waiting {
            if let asker = questions[number]?.asker { leaveLine(number, asker) }
        }
        lookups[question.host]?.holder = asker
        held += 1
        heldByTask[asker.task, default: 0] += 1
        turns += 1
        parties[asker.party, default: Party()].held += 1
        parties[asker.party]?.turn = turns
        return question.host
    }

    /// A name was looked up.
    ///
    /// - Returns: the questions that this answers.
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
        // Parties are few: as many as have names looked up at this moment.
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

    private mutating func leaveLine(_ number: Number, _ asker: Resolver.Asker) {
        parties[asker.party]?[asker.urgency].remove(number, of: asker.task)
        dropIfEmpty(asker.party)
    }

    private mutating func dropIfEmpty(_ party: String?) {
        if parties[party]?.isEmpty == true { parties[party] = nil }
    }
}
