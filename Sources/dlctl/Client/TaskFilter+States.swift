import TaskModel

extension TaskFilter {
    /// Returns this filter restricted to tasks in a state that `action` affects.
    func limited(to action: SelectionAction) -> TaskFilter {
        var filter = self
        let states = action.states
        guard let own = self.states, !own.isEmpty else {
            filter.states = states.count == TaskState.allCases.count ? nil : states
            return filter
        }
        filter.states = own.filter(action.namedStates.contains)
        return filter
    }
}
