import Glibc
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

@Suite struct AttachmentTests {
  private let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }

  private func upload(
    _ person: Person, _ bytes: [UInt8], id: UUID, offset: Int = 0, size: Int? = nil,
    sha256: [UInt8]? = nil, upTo end: Int? = nil, chunk: Int = 65_536
  ) async throws -> Chat.Attachment? {
    let call = person.chat.uploadAttachment(person.options)
    try await call.send(
      .with {
        $0.payload = .header(
          .with {
            $0.uploadId = "\(id)"
            $0.fileName = "photo.jpg"
            $0.contentType = "image/jpeg"
            $0.sizeBytes = Int64(size ?? bytes.count)
            $0.sha256 = sha256 ?? SHA256.digest(bytes)
            $0.offset = Int64(offset)
          })
      })
    var at = offset
    let last = end ?? bytes.count
    while at < last {
      let next = min(last, at + chunk)
      // A server that has heard enough answers before the end.
      try? await call.send(.with { $0.payload = .chunk(Array(bytes[at..<next])) })
      at = next
    }
    call.finish()
    return try await call.response.attachment
  }

  private func download(
    _ person: Person, _ name: String, offset: Int64 = 0, limit: Int64 = 0
  ) async throws -> [UInt8] {
    var result: [UInt8] = []
    let request = Chat.DownloadAttachmentRequest.with {
      $0.name = name
      $0.offset = offset
      $0.limit = limit
    }
    for try await frame in person.chat.downloadAttachment(request, person.options) {
      if case .chunk(let chunk)? = frame.payload { result += chunk }
    }
    return result
  }

  private func send(_ attachment: String, to chat: Chat.Chat, by person: Person) async throws
    -> Chat.Message
  {
    let response = try await person.chat.sendMessage(
      .with {
        $0.parent = chat.name
        $0.messageId = "\(UUID.v7())"
        $0.content = .with {
          $0.kind = .media(
            .with {
              $0.attachments = [attachment]
              $0.caption = "look"
            })
        }
      }, person.options)
    return try #require(response.message)
  }

  @Test func aFileGoesThereAndBack() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let eve = try await world.person("eve")
      let chat = try await ana.createChat(.direct, [ben])
      let attachment = try #require(try await upload(ana, bytes, id: .v7()))
      #expect(attachment.sizeBytes == 300_000 && attachment.sha256 == SHA256.digest(bytes))
      #expect(attachment.expireTime != nil && attachment.uploader == ana.name)
      // Before it is sent it is the uploader's alone.
      await expect(.notFound, "ATTACHMENT_NOT_FOUND") {
        _ = try await download(ben, attachment.name)
      }
      let message = try await send(attachment.name, to: chat, by: ana)
      #expect(try await download(ben, attachment.name) == bytes)
      #expect(try await download(ben, attachment.name, offset: 299_999) == [bytes[299_999]])
      #expect(
        try await download(ben, attachment.name, offset: 70_000, limit: 70_000)
          == Array(bytes[70_000..<140_000]))
      #expect(try await download(ben, attachment.name, offset: 300_000) == [])
      await expect(.outOfRange, "BAD_OFFSET") {
        _ = try await download(ben, attachment.name, offset: 300_001)
      }
      await expect(.notFound, "ATTACHMENT_NOT_FOUND") {
        _ = try await download(eve, attachment.name)
      }
      // Nobody sends what they may not see.
      let own = try await eve.createChat(.selfValue)
      await expect(.notFound, "ATTACHMENT_NOT_FOUND") {
        _ = try await send(attachment.name, to: own, by: eve)
      }
      _ = try await ana.chat.deleteMessages(
        .with {
          $0.parent = chat.name
          $0.ranges = [
            .with {
              $0.firstSequence = message.sequence
              $0.lastSequence = message.sequence
            }
          ]
          $0.scope = .forEveryone
        }, ana.options)
      await expect(.notFound, "ATTACHMENT_NOT_FOUND") {
        _ = try await download(ben, attachment.name)
      }
    }
  }

  @Test("Rule 24: an interrupted upload goes on where it was, and is one file")
  func uploadsResume() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let id = UUID.v7()
      await expect(.failedPrecondition, "UPLOAD_INCOMPLETE") {
        _ = try await upload(ana, bytes, id: id, upTo: 200_000)
      }
      let state = try await ana.chat.getAttachmentUpload(
        .with { $0.uploadId = "\(id)" }, ana.options)
      #expect(state.committedBytes == 200_000 && !state.complete)
      await expect(.outOfRange, "BAD_OFFSET") {
        _ = try await upload(ana, bytes, id: id, offset: 200_001)
      }
      // Also from an earlier place.
      let attachment = try await upload(ana, bytes, id: id, offset: 150_000)
      let name = try #require(attachment?.name)
      #expect(try await download(ana, name) == bytes)
      #expect(try await upload(ana, bytes, id: id)?.name == name)
      let done = try await ana.chat.getAttachmentUpload(
        .with { $0.uploadId = "\(id)" }, ana.options)
      #expect(done.complete && done.attachment?.name == name && done.committedBytes == 300_000)
      // The same bytes again are there at once, as another attachment.
      let again = try await upload(ana, bytes, id: .v7(), upTo: 0)
      #expect(again != nil && again?.name != name)
      // Not for somebody else: that would tell who has what.
      let ben = try await world.person("ben")
      await expect(.failedPrecondition, "UPLOAD_INCOMPLETE") {
        _ = try await upload(ben, bytes, id: .v7(), upTo: 0)
      }
    }
  }

  @Test func whatIsWrongIsRefused() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let id = UUID.v7()
      await expect(.dataLoss, "DIGEST_MISMATCH") {
        _ = try await upload(ana, bytes, id: id, sha256: [UInt8](repeating: 1, count: 32))
      }
      let state = try await ana.chat.getAttachmentUpload(
        .with { $0.uploadId = "\(id)" }, ana.options)
      #expect(state.committedBytes == 0)
      await expect(.invalidArgument, "BAD_CHUNK") {
        _ = try await upload(ana, bytes, id: .v7(), size: 299_999)
      }
      await expect(.invalidArgument, "BAD_UPLOAD") {
        _ = try await upload(ana, bytes, id: .v7(), sha256: [1])
      }
      await expect(.invalidArgument, "LIMIT_EXCEEDED") {
        _ = try await upload(ana, bytes, id: .v7(), size: (2 << 30) + 1)
      }
      await expect(.invalidArgument, "UPLOAD_ID_REUSED") {
        _ = try await upload(ana, Array(bytes.dropLast()), id: id)
      }
    }
  }

  @Test("Rule 24: bytes that no message shows go after a day")
  func whatNothingShowsIsCollected() async throws {
    let clock = TestClock()
    try await withWorld({
      $0.store.clock = { clock.now }
      $0.sweepInterval = .seconds(3600)
    }) { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      let store = world.backend.store
      let path = { (file: String) in
        "\(world.path)/data/assets/\(file.prefix(2))/\(file.dropFirst(2).prefix(2))/\(file)"
      }
      let name = path(
        SHA256.digest(bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
      let first = try #require(try await upload(ana, bytes, id: .v7()))
      let second = try #require(try await upload(ana, bytes, id: .v7()))
      #expect(access(name, F_OK) == 0)
      let message = try await send(second.name, to: chat, by: ana)
      clock.advance(seconds: 86_400)
      let options = try await world.signIn("ana")
      try await store.collectAttachments()
      await expect(.notFound, "ATTACHMENT_NOT_FOUND") {
        _ = try await ana.chat.getAttachment(.with { $0.name = first.name }, options)
      }
      // The other one has the same bytes, and is shown.
      #expect(access(name, F_OK) == 0)
      _ = try await ana.chat.deleteMessages(
        .with {
          $0.parent = chat.name
          $0.ranges = [
            .with {
              $0.firstSequence = message.sequence
              $0.lastSequence = message.sequence
            }
          ]
          $0.scope = .forEveryone
        }, options)
      try await store.collectAttachments()
      #expect(access(name, F_OK) == 0)
      clock.advance(seconds: 86_400)
      try await store.collectAttachments()
      #expect(access(name, F_OK) != 0)
    }
  }
}
