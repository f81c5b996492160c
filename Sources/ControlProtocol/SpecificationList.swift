import TaskModel

/// Tasks in an array: objects, or URLs alone as texts, as in a queue file. Lists of a million URLs come this way.
enum SpecificationList {
    /// Tasks in one list: a line of the shortest would be a hundred times as large in memory.
    static let maximumCount = 10_000

    /// - Throws: ``FieldError`` beneath `key`.
    static func decode<Key: CodingKey>(
        from container: KeyedDecodingContainer<Key>, _ key: Key
    ) throws -> [TaskSpecification] {
        guard var list = try? container.nestedUnkeyedContainer(forKey: key) else {
            throw FieldError(field: key.stringValue, message: "must be an array of tasks")
        }
        var tasks: [TaskSpecification] = []
        if let count = list.count {
            guard count <= maximumCount else {
                throw FieldError(field: key.stringValue, message: "are more than \(maximumCount) in one call")
            }
            tasks.reserveCapacity(count)
        }
        // An attempt that fails costs more than one that does not: most lists are of one form.
        var isText = true
        while !list.isAtEnd {
            if isText {
                if let url = try? list.decode(String.self) {
                    tasks.append(TaskSpecification(url: url))
                    continue
                }
                isText = false
            }
            do {
                tasks.append(try list.decode(TaskSpecification.self))
            } catch let error as FieldError {
                throw FieldError(
                    field: "\(key.stringValue)[\(list.currentIndex)].\(error.field)", code: error.code,
                    message: error.message)
            } catch {
                if let url = try? list.decode(String.self) {
                    tasks.append(TaskSpecification(url: url))
                    isText = true
                    continue
                }
                throw FieldError(
                    field: "\(key.stringValue)[\(list.currentIndex)]", message: "must be an object, or a URL as a text")
            }
        }
        return tasks
    }

    static func encode<Key: CodingKey>(
        _ tasks: [TaskSpecification], to container: inout KeyedEncodingContainer<Key>, _ key: Key
    ) throws {
        var list = container.nestedUnkeyedContainer(forKey: key)
        for task in tasks {
            if task.isURLAlone { try list.encode(task.url) } else { try list.encode(task) }
        }
    }
}
