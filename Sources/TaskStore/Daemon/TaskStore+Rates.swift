import GRDB
package import TaskModel

extension TaskStore {
    package func rateOrders() throws(StoreError) -> RateOrders {
        try read { database in
            RateOrders(
                download: try database.meta("download-rate").map(RateOrder.init(stored:)),
                upload: try database.meta("upload-rate").map(RateOrder.init(stored:)))
        }
    }

    package func setRateOrders(_ orders: RateOrders) async throws(StoreError) {
        try await writes.perform(weight: 2) { database in
            try database.setMeta("download-rate", to: orders.download?.stored)
            try database.setMeta("upload-rate", to: orders.upload?.stored)
        }
    }
}

extension RateOrder {
    fileprivate init(stored: Int64) { self = stored <= 0 ? .unlimited : .limit(stored) }

    fileprivate var stored: Int64 {
        switch self {
        case .unlimited: 0
        case .limit(let rate): rate
        }
    }
}
