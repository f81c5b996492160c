import Testing

@testable import dld

@Suite("The text of the metrics")
struct ExpositionTests {
    private func text(_ family: MetricFamily, _ samples: MetricSample...) -> String {
        Exposition.text([MetricReading(family: family, samples: samples)])
    }

    @Test("a counter has its help, its type and a line for each series")
    func counter() {
        let family = MetricFamily("x_total", .counter, "All x.")
        let one = MetricSample(labels: [.init(name: "a", value: "1"), .init(name: "b", value: "2")], value: .number(7))
        #expect(
            text(family, one, MetricSample(labels: [], value: .number(0.5)))
                == """
                # HELP x_total All x.
                # TYPE x_total counter
                x_total{a="1",b="2"} 7
                x_total 0.5
                # EOF

                """)
    }

    @Test("a histogram has cumulative buckets, a sum and a count")
    func histogram() {
        let cell = HistogramCell(bounds: [0.5, 1])
        for duration: Int64 in [250_000_000, 500_000_000, 1_000_000_000, 7_000_000_000, -1] {
            cell.recordNanoseconds(duration)
        }
        #expect(
            text(
                MetricFamily("t_seconds", .histogram, "Times."),
                MetricSample(labels: [.init(name: "k", value: "v")], value: .histogram(cell.value)))
                    == """
                    # HELP t_seconds Times.
                    # TYPE t_seconds histogram
                    t_seconds_bucket{k="v",le="0.5"} 3
                    t_seconds_bucket{k="v",le="1"} 4
                    t_seconds_bucket{k="v",le="+Inf"} 5
                    t_seconds_sum{k="v"} 8.75
                    t_seconds_count{k="v"} 5
                    # EOF

                    """)
    }

    @Test("each series of a daemon beside others has the label of its name")
    func instance() {
        let sample = MetricSample(labels: [.init(name: "a", value: "1")], value: .number(2))
        let reading = MetricReading(family: MetricFamily("g", .gauge, "G."), samples: [sample])
        #expect(Exposition.text([reading], instance: "two").contains("\ng{daemon=\"two\",a=\"1\"} 2\n"))
    }

    @Test("backslashes and line breaks are escaped, quotation marks in labels alone")
    func escaping() {
        let label = MetricSample.Label(name: "l", value: "a\\b\"c\nd é")
        #expect(
            text(MetricFamily("g", .gauge, "A \\ \" \n B"), MetricSample(labels: [label], value: .number(1)))
                == #"""
                # HELP g A \\ " \n B
                # TYPE g gauge
                g{l="a\\b\"c\nd é"} 1
                # EOF

                """#)
    }

    @Test("numbers are as Prometheus reads them")
    func numbers() {
        let cases: [(Double, String)] = [
            (0, "0"), (-3, "-3"), (0.0005, "0.0005"), (1_795_657_516.25, "1795657516.25"), (1e300, "1e+300"),
            (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"), (9_007_199_254_740_992, "9007199254740992"),
        ]
        for (value, text) in cases { #expect(Exposition.number(value) == text) }
    }

    @Test("names have the prefix, their unit and the suffix of their kind; bounds ascend and fit")
    func families() {
        let names = MetricFamily.all.map(\.name)
        #expect(Set(names).count == names.count)
        for family in MetricFamily.all {
            #expect(family.name.hasPrefix("dld_") && !family.help.isEmpty)
            #expect(family.name.hasSuffix("_total") == (family.kind == .counter), "\(family.name)")
            #expect(family.bounds.isEmpty == (family.kind != .histogram), "\(family.name)")
            #expect(family.bounds == family.bounds.sorted() && family.bounds.count <= HistogramCell.capacity)
            if family.kind == .histogram { #expect(family.name.hasSuffix("_seconds"), "\(family.name)") }
        }
    }
}
