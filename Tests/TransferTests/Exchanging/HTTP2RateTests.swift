import TestSupport
import Testing

@testable import Transfer

@Suite("Rates and HTTP/2 together")
struct HTTP2RateTests {
    private let place: Place

    init() throws { place = try Place() }

    private func server(_ resource: Resource) async throws -> (nginx: Nginx, manager: SessionManager, authority: String)
    {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: certificates.server), http2: true)
        try nginx.publish(resource, as: "f")
        let manager = try SessionManager(
            configuration: .test {
                $0.httpVersion = .http2
                // All connections share one multi handle, where they could be confused.
                $0.loops = 1
            })
        manager.retrier = CountingRetrier(limit: 3)
        return (nginx, manager, certificates.authority.text)
    }

    private func download(
        _ number: Int, from nginx: Nginx, _ manager: SessionManager, _ authority: String, rate: Int64? = nil
    ) -> DownloadRequest {
        var request = TransferRequest(url: nginx.url("/f", host: "localhost"))
        request.caCertificates = authority
        request.maximumRate = rate
        return manager.download(
            request, to: place.target("file\(number)", owner: "test-\(number)", part: ".\(number).part"))
    }

    private func expectWhole(_ downloads: [DownloadRequest], _ resource: Resource) async throws {
        for download in downloads {
            #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
            #expect(download.retryCount == 0)
        }
    }

    @Test("downloads with a rate and others without one from the same server do not mix their bytes")
    func company() async throws {
        let resource = Resource(size: 6 << 20)
        let (nginx, manager, authority) = try await server(resource)
        var downloads = (0..<3).map { download($0, from: nginx, manager, authority, rate: 4 << 20) }
        for download in downloads { download.resume() }
        for number in 3..<9 {
            try await eventually(that: "the others have begun") {
                downloads[0].progress.transferredBytes > Int64(number - 2) * 256 << 10
            }
            downloads.append(download(number, from: nginx, manager, authority))
            downloads[number].resume()
        }
        try await expectWhole(downloads, resource)
        #expect(manager.session.internalFaults == 0)
    }

    @Test("a rate that is set and lifted while streams share a connection leaves every file whole")
    func changing() async throws {
        let resource = Resource(size: 12 << 20)
        let (nginx, manager, authority) = try await server(resource)
        manager.session.downloadLimiter.rate = 60 << 20
        manager.session.downloadLimiter.rate = nil
        let downloads = (0..<6).map { download($0, from: nginx, manager, authority) }
        for download in downloads { download.resume() }
        try await eventually(that: "bytes come") { downloads.contains { $0.progress.transferredBytes > 0 } }
        manager.session.downloadLimiter.rate = 2 << 20
        try await Task.sleep(for: .milliseconds(300))
        manager.session.downloadLimiter.rate = nil
        try await expectWhole(downloads, resource)
        #expect(manager.session.internalFaults == 0)
    }
}
