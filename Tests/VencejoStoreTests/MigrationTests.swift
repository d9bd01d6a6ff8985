import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

@Suite struct MigrationTests {
  /// A file as the program wrote it when chats were made, written to and read, and no more.
  @Test func aFileOfTheFirstSchemaOpens() async throws {
    let scratch = try Scratch()
    let (ana, ben, chat) = (UUID.v7(), UUID.v7(), UUID.v7())
    let messages = (0..<3).map { _ in UUID.v7() }
    do {
      let connection = try Connection(path: scratch.path + "/vencejo.sqlite")
      try connection.migrate(
        Array(Schema.migrations.prefix(4)), application: Schema.application)
      for (key, user, handle) in [(1, ana, "ana"), (2, ben, "ben")] {
        try connection.run(
          """
          INSERT INTO user(user_id, uuid, handle, email, display_name, display_key, role,
            create_us, update_us, version, salt, hash, cost, block_size, parallelism)
          VALUES (?, ?, ?, '', ?, ?, 1, 1, 1, 1, x'', x'', 2, 1, 1)
          """, key, user, handle, handle, handle)
      }
      try connection.run(
        """
        INSERT INTO chat(chat_id, uuid, kind, title, member_count, last_seq, last_pos, create_us,
          update_us, activity_us, version)
        VALUES (1, ?, 2, 'Old', 2, 3, 4, 1, 1, 3, 1)
        """, chat)
      for (user, role, read) in [(1, 4, 3), (2, 2, 1)] {
        try connection.run(
          """
          INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq,
            visible_from, from_pos, version)
          VALUES (1, ?, ?, 1, 1, ?, ?, 1, 1, 1)
          """, user, role, read, read)
      }
      var created = KeysetWriter()
      created.raw(ana.bytes)
      created.raw(ben.bytes)
      for (sequence, (sender, kind, body)) in [
        (nil as Int?, 6, ""), (1, 1, "café"), (1, 1, "two"),
      ].enumerated() {
        try connection.run(
          """
          INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, content, sent_us, version)
          VALUES (1, ?, ?, ?, ?, ?, ?, ?, 1)
          """, sequence + 1, messages[sequence], sender, kind, body,
          kind == 6 ? created.bytes : nil, sequence + 1)
      }
      try connection.run(
        "INSERT INTO log_state(one, last_position, floor, history) VALUES (1, 4, 0, x'0102')")
      var upserted = KeysetWriter()
      upserted.int(0)
      var receipt = KeysetWriter()
      receipt.raw(ben.bytes)
      receipt.int(1)
      func sequence(_ number: Int64) -> [UInt8] {
        var keys = KeysetWriter()
        keys.int(number)
        return keys.bytes
      }
      for (position, (kind, keys)) in [
        (11, upserted.bytes), (10, sequence(1)), (10, sequence(2)), (12, receipt.bytes),
      ].enumerated() {
        try connection.run(
          """
          INSERT INTO event(pos, chat_id, kind, keys, last, commit_us) VALUES (?, 1, ?, ?, 1, 1)
          """, position + 1, kind, keys)
      }
    }
    let store = try scratch.open()
    defer { store.close() }
    let view = try await store.read { try $0.chat(chat, for: 2) }
    #expect(view.title == "Old" && view.policy == ChatPolicy() && view.unread.count == 2)
    #expect(view.membership.deliveredSequence == 1)
    let page = try await store.read { try $0.listMessages(chat, for: 2).messages }
    #expect(page.map(\.id) == messages)
    #expect(page[0].body == .system(SystemNote(.chatCreated, actor: ana, subjects: [ben])))
    #expect(page[1].body == .text("café"))
    #expect(
      try await store.read { try $0.searchMessages("cafe", for: 2).hits.map(\.message.id) }
        == [messages[1]])
    let log = try await store.read { try $0.chatLog(for: 1, after: 0, limit: 100) }
    #expect(log.entries.map(\.position) == [1, 2, 3, 4])
    #expect(
      log.entries.last?.events == [
        .receiptMoved(ReceiptMarker(chat: chat, user: ben, read: 1, delivered: 1))
      ])
    // And it goes on.
    let sent = try await store.write {
      try $0.sendMessage(OutgoingMessage(chat: chat, id: .v7(), text: "new"), by: 2).message
    }
    #expect(sent.sequence == 4)
    #expect(try Store.examine(directory: scratch.path) == [])
  }
}
