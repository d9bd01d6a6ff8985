import Synchronization
import Testing
import VencejoCrypto

@testable import VencejoStore

/// Rules of the protocol page that no other suite is about.
@Suite struct RuleTests {
  private let world: Conversation

  init() throws { world = try Conversation() }

  @Test("Rule 14: times grow with the sequence though the clock goes back")
  func clocksGoBack() async throws {
    let scratch = try Scratch()
    let time = Mutex<Int64>(1_800_000_000_000_000)
    let clock = Clock(time)
    let store = try scratch.open { $0.clock = { clock.now } }
    defer { store.close() }
    let ana = try await store.signUp(NewAccount(handle: "ana", password: "password")).account
    let chat = try await store.write { try $0.createChat(NewChat(kind: .own), by: ana.key).chat }
    var times: [Int64] = []
    for step: Int64 in [0, -3_600_000_000, 0, -1, 7_200_000_000] {
      clock.move(by: step)
      times.append(
        try await store.write {
          try $0.sendMessage(OutgoingMessage(chat: chat.id, id: .v7(), text: "x"), by: ana.key)
            .message.sendTime
        })
    }
    #expect(times == times.sorted() && Set(times).count == times.count)
  }

  private final class Clock: Sendable {
    private let time: Mutex<Int64>
    init(_ time: consuming Mutex<Int64>) { self.time = time }
    var now: Int64 { time.withLock { $0 } }
    func move(by step: Int64) { time.withLock { $0 += step } }
  }

  @Test("Rule 16: a message is one entry of the log, however many hear it")
  func oneEntryForAll() async throws {
    let ana = try await world.user("ana")
    var others: [Account] = []
    for index in 0..<40 { others.append(try await world.user("u\(index)")) }
    let chat = try await world.chat(.group, ana, others)
    let before = try await world.head()
    try await world.send("to all", to: chat, by: ana)
    #expect(try await world.head() == before + 1)
    for user in [others[0], others[39]] {
      #expect(try await world.events(of: user, after: before).count == 1)
    }
  }

  @Test("Rule 6: two devices that read at once cannot move the marker back")
  func twoDevicesReadAtOnce() async throws {
    let (ana, ben) = (try await world.user("ana"), try await world.user("ben"))
    let chat = try await world.chat(.direct, ana, [ben])
    for index in 0..<20 { try await world.send("\(index)", to: chat, by: ana) }
    try await withThrowingTaskGroup { group in
      for sequence in (1...20).shuffled() {
        group.addTask {
          _ = try await world.store.write {
            try $0.markRead(chat.id, upTo: Int64(sequence), isPrivate: false, by: ben.key)
          }
        }
      }
      try await group.waitForAll()
    }
    let view = try await world.view(chat, ben)
    #expect(view.membership.readSequence == 20 && view.unread == .none)
    // Sending implies having read what came before.
    try await world.send("more", to: chat, by: ana)
    try await world.send("mine", to: chat, by: ben)
    #expect(try await world.view(chat, ben).unread == .none)
  }

  @Test("Rule 2: positions reach the observer in order, after the commit")
  func positionsInOrder() async throws {
    let heard = Heard()
    world.store.observe { heard.add($0) }
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    await withTaskGroup { group in
      for index in 0..<100 {
        group.addTask {
          // Some fail, and leave no hole.
          _ = try? await world.send(index % 3 == 0 ? "" : "\(index)", to: chat, by: ana)
        }
      }
    }
    let positions = heard.positions
    #expect(
      positions == Array((positions.first ?? 0)..<(positions.first ?? 0) + Int64(positions.count)))
    #expect(positions.last == (try await world.head()))
  }

  private final class Heard: Sendable {
    private let all = Mutex<[Int64]>([])
    func add(_ batch: CommittedBatch) {
      all.withLock { $0 += batch.transactions.joined().map(\.position) }
    }
    var positions: [Int64] { all.withLock { $0 } }
  }
}
