import Glibc
import TestSupport
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoSQLite

@testable import VencejoClient

/// What a device keeps between runs.
@Suite(.timeLimit(.minutes(1))) struct DeviceStoreTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder("device") }

  private var file: String { "\(folder.path)/ana.sqlite" }

  private func open() throws -> DeviceStore { try #require(try DeviceStore(path: file)) }

  /// Any frame of the kinds that change the cache, for a handful of chats and messages.
  private func frame(_ random: inout some RandomNumberGenerator) -> Chat.SubscribeResponse {
    let chat = "chats/\(Int.random(in: 0..<3, using: &random))"
    let sequence = Int64.random(in: 1...12, using: &random)
    func message(_ text: String) -> Chat.Message {
      var message = Chat.Message(name: "\(chat)/messages/m\(sequence)")
      message.sequence = sequence
      message.sender = ["users/ana", "users/ben"][Int(sequence % 2)]
      message.mine = message.sender == "users/ana"
      message.content = .init(kind: .text(.init(text: text)))
      return message
    }
    var frame = Chat.SubscribeResponse()
    switch Int.random(in: 0..<20, using: &random) {
    case 0: frame.event = .reset(.init())
    case 1...3:
      var snapshot = Chat.Chat(name: chat, kind: .direct)
      snapshot.lastSequence = sequence
      frame.event = .chatSnapshot(.init(chat: snapshot, messages: [message("old")]))
    case 4: frame.event = .chatRemoved(.init(chat: chat))
    case 5: frame.event = .chatUpserted(.init(chat: .init(name: chat, kind: .direct, title: "T")))
    case 6, 7:
      frame.event = .messageUpdated(
        .init(
          message: message("edited \(random.next())"),
          changedFields: .init(paths: ["content", "pinned"])))
    case 8, 9:
      frame.event = .messagesDeleted(
        .init(
          chat: chat, ranges: [.init(firstSequence: sequence, lastSequence: sequence + 1)],
          scope: Bool.random(using: &random) ? .forEveryone : .forMe))
    case 10:
      frame.event = .receiptMoved(
        .init(chat: chat, user: "users/ben", readSequence: sequence, deliveredSequence: sequence))
    case 11:
      frame.event = .unreadChanged(
        .init(chat: chat, unread: .init(unreadCount: Int32(sequence)), readSequence: sequence))
    case 12:
      frame.event = .reactionChanged(
        .init(
          message: message("").name, sequence: sequence, user: "users/ben", emoji: "👍",
          reactions: [.init(emoji: "👍", count: 1)]))
    default: frame.event = .messageCreated(.init(message: message("new")))
    }
    return frame
  }

  /// What is on disk is what is in memory, after each transaction.
  @Test(arguments: UInt64(0)..<40)
  func theFileFollowsTheCache(_ seed: UInt64) throws {
    var random = SeededGenerator(state: seed)
    var store: DeviceStore? = try open()
    var cache = ChatCache()
    cache.attach(try #require(store), .init())
    for step in 1...60 {
      let frames = (0..<Int.random(in: 1...4, using: &random)).map { _ in frame(&random) }
      #expect(cache.apply(frames, token: "t\(step)", user: "users/ana").failure == nil)
      let kept = try #require(store).load()
      #expect(kept.token == "t\(step)")
      #expect(Set(kept.chats.keys) == Set(cache.chats.map(\.name)))
      for (name, entry) in kept.chats {
        #expect(entry.chat == cache.chat(name))
        #expect(entry.messages == cache.messages(of: name))
      }
      if step % 20 == 0 {
        // Another process goes on.
        cache.detach()
        store = nil
        store = try open()
        cache = ChatCache()
        cache.attach(try #require(store), try #require(store).load())
      }
    }
  }

  @Test func whatCouldNotBeKeptIsKeptWithTheNext() throws {
    let store = try open()
    let cache = ChatCache()
    cache.attach(store, .init())
    func created(_ sequence: Int64) -> Chat.SubscribeResponse {
      var frame = Chat.SubscribeResponse()
      frame.event = .messageCreated(
        .init(message: .init(name: "chats/a/messages/m\(sequence)", sequence: sequence)))
      return frame
    }
    #expect(cache.apply([created(1)], token: "t1", user: "u").failure == nil)
    let other = try Connection(path: file)
    try other.execute("ALTER TABLE progress RENAME TO away")
    #expect(cache.apply([created(2)], token: "t2", user: "u").failure != nil)
    try other.execute("ALTER TABLE away RENAME TO progress")
    // An older state, but a whole one.
    #expect(try store.load().token == "t1")
    #expect(try store.load().chats["chats/a"]?.messages.map(\.sequence) == [1])
    #expect(cache.messages(of: "chats/a").map(\.sequence) == [1, 2])
    #expect(cache.apply([created(3)], token: "t3", user: "u").failure == nil)
    #expect(try store.load().chats["chats/a"]?.messages.map(\.sequence) == [1, 2, 3])
  }

  @Test func aFileIsOneProcessesAndItsOwnersAlone() throws {
    let store = try open()
    #expect(try DeviceStore(path: file) == nil)
    for name in folder.names {
      var status = stat()
      #expect(stat("\(folder.path)/\(name)", &status) == 0)
      #expect(status.st_mode & 0o777 == 0o600, "\(name)")
    }
    _ = store
  }

  @Test func filesOfOthersAreNotTouched() throws {
    try Connection(path: file).execute("CREATE TABLE mine (x)")
    let other = #expect(throws: RPCError.self) { try DeviceStore(path: file) }
    #expect(other?.code == .failedPrecondition)
    #expect(try Connection(path: file).first("SELECT count(*) FROM mine") { $0.int(0) } == 0)
    let text = "\(folder.path)/text.sqlite"
    let output = try #require(fopen(text, "w"))
    fputs(String(repeating: "no database ", count: 100), output)
    fclose(output)
    let noDatabase = #expect(throws: RPCError.self) { try DeviceStore(path: text) }
    #expect(noDatabase?.code == .failedPrecondition)
    let nowhere = #expect(throws: RPCError.self) {
      try DeviceStore(path: "\(folder.path)/none/ana.sqlite")
    }
    #expect(nowhere?.code == .failedPrecondition)
  }

  @Test func damageIsTold() throws {
    var store: DeviceStore? = try open()
    store = nil
    try Connection(path: file).execute("INSERT INTO chat VALUES ('chats/a', x'0AFF')")
    store = try open()
    let error = #expect(throws: RPCError.self) { try store?.load() }
    #expect(error?.code == .dataLoss)
  }
}
