import TaskModel
import Testing

@Suite("Sizes and spans")
struct QuantitiesTests {
    @Test(
        "a size is a number, in powers of 1024 or, with B alone, of 1000",
        arguments: [
            ("0", 0), ("500", 500), ("500K", 512_000), ("500k", 512_000), ("2M", 2_097_152), ("1.5G", 1_610_612_736),
            ("2MiB", 2_097_152), ("2miB", 2_097_152), ("1.5GiB", 1_610_612_736), ("2MB", 2_000_000), ("1kB", 1_000),
            ("1.5KB", 1_500), ("500B", 500), ("1T", 1_099_511_627_776), ("0.5K", 512), ("00012", 12),
            ("8388607T", 9_223_370_937_343_148_032),
        ] as [(String, Int64)])
    func size(text: String, bytes: Int64) {
        #expect(bytes > Int64(9.2e18) ? ByteSize.parse(text) == nil : ByteSize.parse(text) == bytes)
    }

    @Test(
        "what is no size is none",
        arguments: [
            "", "K", "-1", "+1", "1Kb", "1KiBs", "1iB", "1BB", "B", "KB", "1b", "1 K", " 1", "1.", ".5", "1.2.3", "1e3",
            "inf", "nan", "0x10", "1P", "１",
            "99999999999999999999", "9999999T", "1\n", "123456789012345678901",
        ])
    func noSize(text: String) {
        #expect(ByteSize.parse(text) == nil)
    }

    @Test(
        "a size is described for the eye",
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (150 << 10, "150 KiB"),
            (1_503_238_554, "1.4 GiB"), (Int64.max, "8.0 EiB"),
        ] as [(Int64, String)])
    func describe(bytes: Int64, text: String) {
        #expect(ByteSize.describe(bytes) == text)
    }

    @Test(
        "a span has a unit",
        arguments: [
            ("100ms", 100), ("2s", 2_000), ("10m", 600_000), ("6h", 21_600_000), ("7d", 604_800_000), ("1.5s", 1_500),
            ("1h30m", 5_400_000), ("1d12h", 129_600_000), ("2m0.5s", 120_500), ("1s500ms", 1_500), ("0s", 0),
            ("0.5ms", 0),
        ] as [(String, Milliseconds)])
    func span(text: String, milliseconds: Milliseconds) {
        #expect(TimeSpan.parse(text) == milliseconds)
    }

    @Test(
        "what is no span is none",
        arguments: [
            "", "5", "s", "ms", "-1s", "1 s", "1S", "1w", "1mss", "1e3s", ".5s", "30m1h", "1h1h", "1h30", "1hm",
            "99999999999d", "1s\n", "١s",
        ])
    func noSpan(text: String) {
        #expect(TimeSpan.parse(text) == nil)
    }
}
