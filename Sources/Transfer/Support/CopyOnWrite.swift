/// A box for a large value, shared by all copies until one of them is modified.
///
/// `@unchecked` is safe because the box is modified only while it is uniquely referenced.
struct CopyOnWrite<Value: Sendable>: @unchecked Sendable {
    private final class Box {
        // The box is reached through `CopyOnWrite` only, whose accesses the compiler checks as those of a variable.
        @exclusivity(unchecked) var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    init(_ value: Value) { box = Box(value) }

    var value: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}
