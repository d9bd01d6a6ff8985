import Glibc
import TestSupport
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoRPC

/// One round: people do random things, connections break, the server dies once; at the end all
/// must agree.
final class Round {
  struct Person {
    var name = ""
    var token = ""
    var password = "password"
    /// One that is being set and may be set already.
    var nextPassword: String?
    let handle: String
  }

  let seed: UInt64
  var random: SeededGenerator
  var model = ChatModel()
  var people: [Person]
  var devices: [Device] = []
  var world: ProcessWorld
  var faults: [String] = []
  let clock: SharedClock
  private let root: String
  /// The last things done, to be told with a fault.
  private(set) var journal: [String] = []
  private var stamp = 0

  init(seed: UInt64, users: Int) throws {
    self.seed = seed
    random = SeededGenerator(state: seed)
    var template = Array("/tmp/vencejo-model-XXXXXX".utf8CString)
    root = String(cString: try #require(mkdtemp(&template)))
    clock = try SharedClock(path: "\(root)/clock")
    // Somewhere in the middle of the round.
    let point = ProcessWorld.crashPoints.randomElement(using: &random) ?? "after-commit"
    let pass = Int.random(in: 40..<180, using: &random)
    journal = ["the server will die at pass \(pass) of \(point)"]
    world = try ProcessWorld(root: root, clock: clock, crash: (point, pass))
    client = Chat.ChatClient(try world.channel())
    people = (0..<users).map { Person(handle: "user\($0)") }
  }

  func run(operations: Int) async throws {
    for index in people.indices {
      let response = try await Auth.AuthClient(world.channel()).signUp(
        .with {
          $0.handle = people[index].handle
          $0.password = "password"
        })
      people[index].name = response.user?.name ?? ""
      people[index].token = response.tokens?.accessToken ?? ""
    }
    for user in people.indices {
      for _ in 0..<2 {
        let device = Device(user: user, name: people[user].name)
        device.connect(client, options(user))
        devices.append(device)
      }
    }
    let errands = Self.schedule(operations, &random)
    for index in 0..<operations {
      await shake()
      for errand in errands[index] ?? [] where faults.isEmpty { try await run(errand) }
      if world.hasCrashed { try await restart() }
      try await act(client)
      if world.hasCrashed { try await restart() }
      if !faults.isEmpty { break }
    }
    if faults.isEmpty {
      // One that did not come to the point where it was to die.
      if restarts == 0 {
        world.killNow()
        while !world.hasCrashed { await Task.yield() }
        try await restart()
      }
      try await compare()
    }
    for device in devices { await device.disconnect() }
    await world.end()
    TemporaryFolder.remove(root)
  }

  private(set) var client: Chat.ChatClient
  private(set) var restarts = 0

  /// Everybody again: access tokens last a quarter of an hour.
  func signInAll(_ client: Chat.ChatClient) async throws {
    for index in people.indices { people[index].token = try await signIn(index, client) }
  }

  func options(_ user: Int) -> CallOptions { .bearer(people[user].token) }

  func log(_ text: String) {
    journal.append(text)
    if journal.count > 40 { journal.removeFirst() }
  }

  func fault(_ text: String) {
    faults.append("seed \(seed): \(text)")
  }

  func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

  func unique(_ prefix: String) -> String {
    stamp += 1
    return "\(prefix)-\(stamp)"
  }

  // MARK: Connections

  private func shake() async {
    guard pick(0..<8) == 0, let device = devices.randomElement(using: &random) else { return }
    if device.isLive {
      await device.disconnect()
      if pick(0..<6) == 0 { device.loseCache() }
    } else if pick(0..<2) == 0 {
      device.connect(client, options(device.user))
    } else {
      try? await device.catchUp(
        client, options(device.user), pages: pick(1..<3), pageSize: Int32(pick(1..<6)))
    }
  }

  private func restart() async throws {
    for device in devices { await device.disconnect() }
    world = try ProcessWorld(root: root, clock: clock, crash: nil)
    client = Chat.ChatClient(try world.channel())
    restarts += 1
    log("the server died and was started again")
    // Time may have passed before it died: streams need tokens that are good.
    try await signInAll(client)
    for device in devices where pick(0..<2) == 0 {
      device.connect(client, options(device.user))
    }
  }

  /// Does something, and does it again when the server died meanwhile: whatever takes a
  /// request_id or is idempotent by its content must come out as if done once. Answers the reason
  /// of a refusal.
  func attempt(
    _ what: String, _ body: (Chat.ChatClient) async throws -> Void
  ) async throws -> String? {
    log(what)
    var last = ""
    for _ in 0..<3 {
      do {
        try await body(client)
        return nil
      } catch let error as RPCError {
        if let info = error.detail(GoogleRPC.ErrorInfo.self) { return info.reason }
        last = "\(error)"
      }
      // No answer: it is dying, or something is wrong.
      let deadline = ContinuousClock.now + .seconds(5)
      while !world.hasCrashed, ContinuousClock.now < deadline { await Task.yield() }
      guard world.hasCrashed else { return last }
      try await restart()
    }
    return "NEVER_DONE: \(last)"
  }

  // MARK: The end

  private func compare() async throws {
    // A message to oneself, whose arrival says that all before it has arrived.
    for device in devices where !device.isLive {
      await device.disconnect()
      device.connect(client, options(device.user))
    }
    for (user, person) in people.enumerated() {
      let own = try await client.createChat(
        .with { $0.chat = .with { $0.kind = .selfValue } }, options(user))
      let name = own.chat?.name ?? ""
      if model.chats[name] == nil { model.create(name, .own, title: "", by: user, with: []) }
      let text = unique("fence")
      _ = try await client.sendMessage(
        .with {
          $0.parent = name
          $0.messageId = "\(UUID.v7())"
          $0.content = .with { $0.kind = .text(.with { $0.text = text }) }
        }, options(user))
      model.send(ChatModel.Message(id: "", sender: user, text: text), to: name, by: user)
      for device in devices where device.user == user {
        let deadline = ContinuousClock.now + .seconds(20)
        while !device.contents.chats.values.contains(where: { chat in
          chat.messages.values.contains { $0.text == text }
        }) {
          guard ContinuousClock.now < deadline else {
            fault(
              "a device of \(person.handle) never heard the end: \(device.lastEnd); it holds "
                + "\(device.contents.chats.count) chats, "
                + "own: \(device.contents.chats[name].map { "\($0)" } ?? "none")")
            return
          }
          await Task.yield()
        }
      }
    }
    for user in people.indices {
      try await compare(user)
      try await compareLooks(user)
    }
  }

  private func compare(_ user: Int) async throws {
    let fresh = try await snapshot(user)
    compareWithModel(user, fresh)
    for device in devices where device.user == user {
      // What expired goes from the devices when the server has swept it.
      let deadline = ContinuousClock.now + .seconds(model.time > 0 ? 10 : 0)
      while !Self.agree(device.contents, fresh), ContinuousClock.now < deadline {
        await Task.yield()
      }
      let cache = device.contents
      for text in cache.faults { fault("\(people[user].handle): \(text)") }
      guard Set(cache.chats.keys) == Set(fresh.keys) else {
        fault(
          "\(people[user].handle) holds \(cache.chats.keys.sorted()), there are \(fresh.keys.sorted())"
        )
        continue
      }
      for (name, held) in cache.chats {
        guard var there = fresh[name] else { continue }
        there.floor = held.floor
        there.messages = there.messages.filter { $0.key >= held.floor }
        guard held != there else { continue }
        fault("\(people[user].handle) in \(name): \(Self.difference(held, there))")
      }
    }
  }

  private static func agree(_ cache: ClientCache, _ fresh: [String: ClientCache.ChatState]) -> Bool
  {
    guard cache.faults.isEmpty else { return true }
    return Set(cache.chats.keys) == Set(fresh.keys)
      && cache.chats.allSatisfy { name, held in
        guard var there = fresh[name] else { return false }
        there.floor = held.floor
        there.messages = there.messages.filter { $0.key >= held.floor }
        return held == there
      }
  }

  private static func difference(_ held: ClientCache.ChatState, _ there: ClientCache.ChatState)
    -> String
  {
    var (held, there) = (held, there)
    var texts: [String] = []
    for sequence in Set(held.messages.keys).union(there.messages.keys).sorted()
    where held.messages[sequence] != there.messages[sequence] {
      texts.append(
        "\(sequence) is held as \(held.messages[sequence].map { "\($0)" } ?? "nothing"), is \(there.messages[sequence].map { "\($0)" } ?? "nothing")"
      )
    }
    held.messages = [:]
    there.messages = [:]
    if held != there { texts.append("held \(held), is \(there)") }
    return texts.prefix(4).joined(separator: "; ")
  }

  /// All a user may see, asked for afresh.
  private func snapshot(_ user: Int) async throws -> [String: ClientCache.ChatState] {
    var result: [String: ClientCache.ChatState] = [:]
    var token = ""
    repeat {
      let page = try await client.listChats(
        .with {
          $0.pageSize = 7
          $0.pageToken = token
        }, options(user))
      for chat in page.chats {
        var state = ClientCache.ChatState()
        ClientCache.fill(&state, chat)
        var older = ""
        repeat {
          let messages = try await client.listMessages(
            .with {
              $0.parent = chat.name
              $0.pageSize = 50
              $0.pageToken = older
            }, options(user))
          for message in messages.messages {
            state.messages[message.sequence] = ClientCache.message(message)
          }
          older = messages.olderPageToken
        } while !older.isEmpty
        result[chat.name] = state
      }
      token = page.nextPageToken
    } while !token.isEmpty
    return result
  }

  private static func count(_ poll: ChatModel.Poll?) -> [Int32: Int32] {
    var votes: [Int32: Int32] = [:]
    for option in (poll?.votes.values).map({ $0.flatMap(\.self) }) ?? [] {
      votes[Int32(option), default: 0] += 1
    }
    return votes
  }

  private func compareWithModel(_ user: Int, _ fresh: [String: ClientCache.ChatState]) {
    let handle = people[user].handle
    let expected = model.chats(of: user)
    guard Set(fresh.keys) == expected else {
      fault("\(handle) is told of \(fresh.keys.sorted()), is in \(expected.sorted())")
      return
    }
    for (name, state) in fresh {
      guard let chat = model.chats[name], let member = chat.members[user] else { continue }
      let visible = model.visible(user, name)
      guard state.messages.keys.sorted() == visible.map(Int64.init) else {
        fault("\(handle) sees \(state.messages.keys.sorted()) of \(name), should \(visible)")
        continue
      }
      for sequence in visible {
        let (message, seen) = (chat.messages[sequence - 1], state.messages[Int64(sequence)])
        var counts: [String: Int32] = [:]
        for emoji in message.reactions.values { counts[emoji, default: 0] += 1 }
        let should = ClientCache.Message(
          text: message.isDeleted ? "" : message.text,
          sender: message.sender.map { people[$0].name } ?? "", isDeleted: message.isDeleted,
          edits: Int32(message.edits), reactions: counts, isPinned: message.isPinned,
          isStarred: message.starredBy.contains(user),
          votes: message.isDeleted ? [:] : Self.count(message.poll),
          attachments: message.isDeleted ? [] : message.attachment.map { [$0] } ?? [])
        if seen != should {
          fault(
            "\(handle) sees \(sequence) of \(name) as \(seen.map { "\($0)" } ?? "-"), should \(should)"
          )
        }
      }
      let unread = model.unread(user, name)
      let settings = chat.settings[user] ?? ChatModel.Settings()
      if state.unread != Int32(unread.count) {
        fault("\(handle) has \(state.unread) unread in \(name), should \(unread.count)")
      }
      if state.read != Int64(member.read) {
        fault("\(handle) has read \(state.read) of \(name), should \(member.read)")
      }
      if state.role.rawValue != Int32(member.role.rawValue) {
        fault("\(handle) is \(state.role) in \(name), should \(member.role)")
      }
      if state.title != chat.title { fault("\(name) is \(state.title), should \(chat.title)") }
      if !state.isChannel, Int(state.memberCount) != chat.members.values.filter(\.isIn).count {
        fault("\(name) has \(state.memberCount) members, should \(chat.members)")
      }
      if state.archived != settings.isArchived || state.pinRank != Int32(settings.pinRank)
        || state.markedUnread != settings.isMarkedUnread
      {
        fault("\(handle) has other settings in \(name): \(state), should \(settings)")
      }
    }
  }
}
