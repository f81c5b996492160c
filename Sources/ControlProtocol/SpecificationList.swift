import TaskModel

/// The JSON array of tasks: objects, or plain URLs as strings, as in a queue file. Lists of a million URLs are sent
/// this way.
enum SpecificationList {
    /// The maximum number of tasks in one list. The shortest tasks take about a hundred times as much memory as their
    /// line.
    static let maximumCount = 10_000

    /// Decodes the list at `key`.
    ///
    /// - Throws: ``FieldError`` with a field beneath `key`.
    static func decode<Key: CodingKey>(
        from container: KeyedDecodingContainer<Key>, _ key: Key
    ) throws -> [TaskSpecification] {
        guard var list = try? container.nestedUnkeyedContainer(forKey: key) else {
            throw FieldError(field: key.stringValue, message: "must be an array of tasks")
        }
        var tasks: [TaskSpecification] = []
        if let count = list.count {
            guard count <= maximumCount else {
                throw FieldError(field: key.stringValue, message: "contains more than \(maximumCount) tasks")
            }
            tasks.reserveCapacity(count)
        }
        // A failed decoding attempt is slow, and most lists use one form throughout: try the form of the previous
        // element first.
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
                var task = try list.decode(TaskSpecification.self)
                if let last = tasks.last { task.shareRareValues(with: last) }
                tasks.append(task)
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
                    field: "\(key.stringValue)[\(list.currentIndex)]", message: "must be an object or a URL string")
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
