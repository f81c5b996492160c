import TaskQueue

extension TaskLogKind {
    /// The message id in the journal. `systemd/dld.catalog` explains each.
    ///
    /// An id never changes and is never used for another kind, since people filter by it.
    var messageID: String {
        switch self {
        case .added: "c8dd066157e9486991946165e335b49e"
        case .started: "57807c6a2a08435d893dc2026a3e5ade"
        case .attemptFailed: "d44dd98de5dd49e1909b45b8255246b4"
        case .waiting: "33e95f7b0e81495db1f99c2a91226967"
        case .needsPerson: "5516a26e8fe5465a8e72df3cb125c212"
        case .completed: "2688fb8e05eb480d99a35718443a3dc6"
        case .failed: "a6970afb431f45538abb2b901fb1804b"
        case .updated: "65f4081889624edb9fa8a917d1d7d0c7"
        case .paused: "a6b7d447997e4b7a8a9ecc3088b7380a"
        case .resumed: "ae6b60fea41a4c858eba3f38895ffcd0"
        case .cancelled: "dc774828eaa54ca4ab3f57289d26d84f"
        case .retried: "e7324296b99e4613acb325d61127c078"
        case .removed: "7f5969f4961f42848268d9615865e91d"
        case .batchFinished: "34392251d20540628e8d11c86dd69268"
        }
    }
}
