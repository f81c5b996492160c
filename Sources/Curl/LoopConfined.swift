/// A value that lives on a loop's thread, held by an object that other threads share.
///
/// `@unchecked`: the value is reached with a ``LoopCore`` only, which never leaves its thread. The owner uses the same
/// loop each time, and empties the holder before its last reference goes.
package final class LoopConfined<Value>: @unchecked Sendable {
    private var stored: Value?

    package init() {}

    package func value(on core: LoopCore) -> Value? { stored }

    package func set(_ value: Value?, on core: LoopCore) { stored = value }
}

/// A weak reference to an object that lives on a loop's thread, for closures that other threads hold and call.
///
/// `@unchecked`: the object is reached in work that runs on its loop's thread only. Weak references can be copied and
/// dropped on any thread.
package struct LoopReference<Object: AnyObject>: @unchecked Sendable {
    private weak var object: Object?
    private let loop: TransferLoop

    /// Creates a reference to an object of the thread of `core`.
    package init(_ object: Object, on core: LoopCore) {
        self.object = object
        loop = core.loop
    }

    package func object(on core: LoopCore) -> Object? { object }

    /// Runs `work` on the loop's thread soon, in the order of the calls. Nothing happens if the object is gone by then.
    ///
    /// - Returns: `false` if the loop has been stopped and the work will not run.
    @discardableResult
    package func perform(_ work: @escaping @Sendable (Object) -> Void) -> Bool {
        loop.post { _ in
            if let object { work(object) }
        }
    }
}
