import Synchronization
import Testing
import VencejoCrypto

@testable import VencejoStore

/// What happens when there is no room: what is acknowledged stays, nothing else is claimed, and
/// all goes on when there is room again.
@Suite struct DiskFullTests {
  private final class Limit: Sendable {
    private let pages = Mutex<Int64>(1_000_000)
    var value: Int64 {
      get { pages.withLock { $0 } }
      set { pages.withLock { $0 = newValue } }
    }
  }

  @Test func sendsFailReadsGoOnAndAllIsThereAfterwards() async throws {
    let scratch = try Scratch()
    let limit = Limit()
    let store = try scratch.open { $0.pageLimit = { limit.value } }
    let ana = try await store.signUp(NewAccount(handle: "ana", password: "password")).account
    let chat = try await store.write {
      try $0.createChat(NewChat(kind: .own), by: ana.key).chat
    }
    let text = String(repeating: "full ", count: 2000)
    func send(_ id: UUID) async throws {
      try await store.write {
        _ = try $0.sendMessage(OutgoingMessage(chat: chat.id, id: id, text: text), by: ana.key)
      }
    }
    var acknowledged: [UUID] = [.v7()]
    try await send(acknowledged[0])
    // No page more than there are: SQLite takes no smaller limit.
    limit.value = 1
    var refused: [UUID] = []
    for _ in 0..<100 {
      let id = UUID.v7()
      do {
        try await send(id)
        acknowledged.append(id)
      } catch let error as StoreError {
        #expect(error.code == .resourceExhausted && error.reason == "DISK_FULL")
        #expect(error.details == [.retry(afterMilliseconds: 10_000)])
        refused.append(id)
      }
    }
    #expect(refused.count > 90)
    // Reads go on, and see what was acknowledged.
    let seen = try await store.read {
      try $0.listMessages(chat.id, pageSize: 200, for: ana.key).messages.map(\.id)
    }
    #expect(seen == acknowledged)
    #expect(try await store.read { try $0.chatLog(for: ana.key, after: 0, limit: 1000) }.isAtHead)
    // Room again: no restart is needed, and what was refused can be sent.
    limit.value = 1_000_000
    for id in refused { try await send(id) }
    let all = try await store.read {
      try $0.listMessages(chat.id, pageSize: 200, for: ana.key).messages
    }
    #expect(all.map(\.id) == acknowledged + refused)
    #expect(all.map(\.sequence) == (1...Int64(all.count)).map { $0 })
    store.close()
    #expect(try Store.examine(directory: scratch.path) == [])
  }
}
