import TaskModel

extension TaskFilter {
    /// Returns this filter restricted to tasks in one of `states`.
    func limited(to states: [TaskState]) -> TaskFilter {
        var filter = self
        guard let own = self.states, !own.isEmpty else {
            filter.states = states.count == TaskState.allCases.count ? nil : states
            return filter
        }
        filter.states = own.filter(states.contains)
        return filter
    }
}
