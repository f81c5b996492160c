import TaskModel
import Testing

@testable import dlctl

@Suite("The map of a file's parts")
struct SegmentMapTests {
    private func map(_ segments: [(Int64, Int64)], of total: Int64, width: Int = 10, unicode: Bool = false) -> String? {
        SegmentMap(width: width, style: .init(colour: false, unicode: unicode))
            .line(segments.map { LiveSegment(first: $0.0, end: $0.1) }, total: total)
    }

    @Test("whole, partial and empty parts have different characters")
    func cells() {
        #expect(map([(0, 30), (45, 50), (90, 100)], of: 100) == "###.+....#")
        #expect(map([(0, 30), (45, 50)], of: 100, unicode: true) == "███░▒░░░░░")
        #expect(map([(0, 5), (6, 10)], of: 100) == "+.........")
        #expect(map([], of: 100) == "..........")
        #expect(map([(0, 100)], of: 100) == "##########")
    }

    @Test("files smaller than the map, empty ones and the largest are no error")
    func sizes() {
        #expect(map([(0, 1)], of: 2) == "#####.....")
        #expect(map([], of: 0) == nil)
        #expect(map([(0, 1)], of: 1, width: 0) == nil)
        #expect(map([(0, .max)], of: .max) == "##########")
        #expect(map([(0, .max / 2)], of: .max, width: 2) == "#.")
        #expect(map([(50, 200)], of: 100) == ".....#####")
    }
}
