import Foundation
import HTTPTypes
import TaskFiles
import TaskModel
import Testing
import Transfer

@testable import TaskQueue

@Suite("The message to a webhook")
struct WebhookMessageTests {
    private func message(_ change: (inout Webhook) -> Void = { _ in }) throws -> WebhookMessage {
        var event = TaskEvent(sequence: 12, at: 5, type: .completed, id: TaskID(3), state: .completed)
        event.url = "https://example.org/ä/b"
        var webhook = Webhook(url: "https://hooks.example.org/x")
        change(&webhook)
        return try WebhookMessage(event, to: webhook, key: "00ff-12", now: 1_700_000_000_999)
    }

    private func field(_ name: String, of message: WebhookMessage) -> String? {
        HTTPField.Name(name).flatMap { message.request.headerFields[$0] }
    }

    @Test("the body is the event, with every field")
    func body() throws {
        let message = try message()
        let event = try JSONDecoder().decode(TaskEvent.self, from: Data(message.body))
        #expect(event.sequence == 12 && event.url == "https://example.org/ä/b")
        #expect(String(decoding: message.body, as: UTF8.self).contains("\"totals\":null"))
        #expect(message.request.method == .post && message.request.redirects == .stop)
        #expect(field("Content-Type", of: message) == "application/json")
        #expect(field("Dld-Event", of: message) == "completed")
        #expect(field("Idempotency-Key", of: message) == "00ff-12")
        #expect(field("Dld-Signature", of: message) == nil)
    }

    @Test("own header lines are sent, and do not replace those of the message")
    func headers() throws {
        let message = try message {
            $0.headers = ["Authorization: Bearer x: y", "X-Two:2", "Content-Type: text/plain", "Dld-Event: added"]
        }
        #expect(field("Authorization", of: message) == "Bearer x: y")
        #expect(field("X-Two", of: message) == "2")
        #expect(field("Content-Type", of: message) == "application/json")
        #expect(field("Dld-Event", of: message) == "completed")
    }

    @Test("the signature is the HMAC-SHA-256 of time and body")
    func signature() throws {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 'k€y'
        #expect(
            WebhookMessage.signature(of: Array(#"{"a":1}"#.utf8), secret: "k€y", seconds: 1_700_000_000)
                == "t=1700000000,v1=d902a19594c87a4b674f7a96cad7c4f884bf5111f503ef7a08516de8f559ec19")
        let message = try message { $0.secret = "s" }
        #expect(
            field("Dld-Signature", of: message)
                == WebhookMessage.signature(of: message.body, secret: "s", seconds: 1_700_000_000))
    }
}
