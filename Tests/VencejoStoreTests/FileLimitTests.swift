import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

/// The limits of the protocol page on files and what is posted, as in ``LimitTests``.
@Suite struct FileLimitTests {
  private let world: Conversation

  init() throws { world = try Conversation() }

  @Test("Limit: attachments of a message")
  func attachments() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    var ids: [UUID] = []
    for index in 0..<11 {
      let bytes = Array("file \(index)".utf8)
      let upload = try await world.write {
        try $0.beginUpload(Self.upload(SHA256.digest(bytes), Int64(bytes.count)), by: ana.key)
      }
      try await world.store.files.write(bytes, toUpload: upload.key, at: 0)
      ids.append(try await world.store.finish(upload).id)
    }
    func send(_ count: Int) async -> String? {
      let attachments = Array(ids.prefix(count))
      return await world.refused {
        _ = try $0.sendMessage(
          OutgoingMessage(
            chat: chat.id, id: .v7(), body: .media(Media(attachments: attachments))),
          by: ana.key)
      }
    }
    #expect(await send(11) == "BAD_ATTACHMENTS")
    #expect(await send(10) == nil)
  }

  private static func upload(_ sha256: [UInt8], _ size: Int64) -> NewUpload {
    NewUpload(id: .v7(), sha256: sha256, size: size, fileName: "f", contentType: "a/b")
  }

  @Test("Limit: uploads begun and not complete, of a user")
  func openUploads() async throws {
    let ana = try await world.user("ana")
    func begin(_ index: Int) async -> String? {
      await world.refused {
        _ = try $0.beginUpload(Self.upload(SHA256.digest("\(index)"), 10), by: ana.key)
      }
    }
    for index in 0..<64 { #expect(await begin(index) == nil) }
    #expect(await begin(64) == "TOO_MANY_UPLOADS")
    // They rest for a day at most.
    world.clock.advance(seconds: 86_401)
    try await world.store.collectAttachments()
    #expect(await begin(64) == nil)
  }

  @Test("Limit: a file, all files of a user")
  func quota() async throws {
    let ana = try await world.user("ana")
    func begin(_ size: Int64) async -> String? {
      await world.refused {
        _ = try $0.beginUpload(Self.upload(SHA256.digest("\(size)"), size), by: ana.key)
      }
    }
    let gibibyte: Int64 = 1 << 30
    #expect(await begin(2 * gibibyte + 1) == "LIMIT_EXCEEDED")
    // 18 GiB are there already.
    try await world.write {
      _ = try $0.run(
        """
        INSERT INTO attachment(uuid, sha256, size, file_name, content_type, uploader_id, create_us)
        VALUES (?, x'00', ?, 'f', 'a/b', ?, 0)
        """, UUID.v7(), 18 * gibibyte, ana.key)
    }
    #expect(await begin(2 * gibibyte) == nil)
    #expect(await begin(1) == "QUOTA_EXCEEDED")
    try await world.write { _ = try $0.run("DELETE FROM upload") }
    #expect(await begin(1) == nil)
  }

  @Test("Limit: push endpoints")
  func endpoints() async throws {
    let ana = try await world.user("ana")
    func create() async throws -> UUID? {
      try await world.write {
        try $0.createHook(
          NewHook(.push, uri: "https://hook.example/", secret: [1]), by: ana.key)?.id
      }
    }
    var first: UUID?
    for _ in 0..<20 { first = try await create() }
    #expect(await reason { _ = try await create() } == "TOO_MANY_HOOKS")
    let gone = try #require(first)
    #expect(try await world.write { try $0.deleteHook(gone, .push, by: ana.key) })
    #expect(await reason { _ = try await create() } == nil)
  }

  @Test("Limit: passwords asked to be reset")
  func resets() async throws {
    _ = try await world.user("ana")
    func ask() async throws -> Int64 {
      try await world.write {
        try $0.requestPasswordReset(identifier: "ana")
        return try $0.first("SELECT count(*) FROM reset_code", read: { $0.int(0) }) ?? 0
      }
    }
    for count: Int64 in 1...3 { #expect(try await ask() == count) }
    // Nobody is told, and nothing happens.
    #expect(try await ask() == 3)
    world.clock.advance(seconds: 3601)
    // The codes of before are over.
    #expect(try await ask() == 1)
  }
}
