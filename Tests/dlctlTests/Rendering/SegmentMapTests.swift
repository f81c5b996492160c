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

    @Test("connections are marked where they receive, over several lines")
    func connections() {
        let map = SegmentMap(width: 5, style: .init(colour: false, unicode: false))
        let connections = [25, 60, -1, 100, .max].map {
            LiveConnection(address: nil, first: 0, next: $0, end: nil, rate: 0)
        }
        let segments = [LiveSegment(first: 0, end: 25), LiveSegment(first: 50, end: 60)]
        #expect(map.lines(2, segments, connections, total: 100) == ["##>..", "#>..."])
        #expect(map.lines(2, segments, total: 0) == [])
    }

    @Test("numbers that make no sense break nothing")
    func nonsense() {
        #expect(map([(-5, .max), (70, 10), (.max, .min)], of: 100) == "##########")
        #expect(map([(.max, .min)], of: 100) == "..........")
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
