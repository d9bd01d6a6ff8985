import Glibc
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

@Suite struct SubscribeTests {
  typealias Frames = ServerStreamingCall<Chat.SubscribeResponse>.AsyncIterator

  /// Frames up to and with the first for which `isLast` holds.
  private func read(
    _ frames: inout Frames, until isLast: (Chat.SubscribeResponse) -> Bool
  ) async throws -> [Chat.SubscribeResponse] {
    var result: [Chat.SubscribeResponse] = []
    while let frame = try await frames.next() {
      result.append(frame)
      if isLast(frame) { return result }
    }
    Issue.record("the stream ended after \(result.count) frames")
    return result
  }

  @Test("Rule 5: the sender knows their own message by its id")
  func liveFramesReachEverybodyAndSayWhoseTheyAre() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      var anaFrames = ana.subscribe().makeAsyncIterator()
      var benFrames = ben.subscribe().makeAsyncIterator()
      _ = try await read(&anaFrames) { $0.isCaughtUp }
      _ = try await read(&benFrames) { $0.isCaughtUp }
      let message = try await ana.send("Hola", to: chat)
      let seenByBen = try #require(try await benFrames.next())
      let seenByAna = try #require(try await anaFrames.next())
      #expect(seenByAna.message == message)
      #expect(seenByBen.message?.mine == false)
      #expect(seenByBen.message?.name == message.name)
      #expect(!seenByBen.historical && !seenByBen.resumeToken.isEmpty)

      // Ben reads: Ana sees the receipt, Ben's own device the count.
      _ = try await ben.chat.markRead(
        .with {
          $0.chat = chat.name; $0.upToSequence = 1
        }, ben.options)
      let receipt = try #require(try await anaFrames.next())
      #expect(
        receipt.event
          == .receiptMoved(
            .init(chat: chat.name, user: ben.name, readSequence: 1, deliveredSequence: 1)))
      let own = try await read(&benFrames) { !$0.resumeToken.isEmpty }
      #expect(own.count == 2)
      guard case .unreadChanged(let unread)? = own.last?.event else {
        Issue.record("no UnreadChanged")
        return
      }
      #expect(unread.unread?.unreadCount == 0 && unread.totalUnreadCount == 0)
      // And it is live again afterwards.
      try await ana.send("again", to: chat)
      #expect(try await benFrames.next()?.message?.sequence == 2)
    }
  }

  /// One frame for the sender's devices, one for all the others.
  @Test("Rule 15: an event is encoded once for all who hear it alike")
  func eachMessageIsEncodedTwiceHoweverManyListen() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      var others: [Person] = []
      for name in ["ben", "cleo", "dan"] { others.append(try await world.person(name)) }
      let chat = try await ana.createChat(.group, others, title: "G")
      var streams: [Frames] = []
      for person in others + [ana] {
        for _ in 0..<6 { streams.append(person.subscribe().makeAsyncIterator()) }
      }
      for index in streams.indices { _ = try await read(&streams[index]) { $0.isCaughtUp } }
      let before = world.backend.encodedChatFrames
      for number in 1...5 { try await ana.send("\(number)", to: chat) }
      for index in streams.indices {
        let heard = try await read(&streams[index]) {
          $0.message?.content?.kind == .text(.with { $0.text = "5" })
        }
        #expect(heard.count == 5)
      }
      #expect(world.backend.encodedChatFrames - before == 10)
    }
  }

  @Test func newChatsAppearAndStrangersHearNothing() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let eve = try await world.person("eve")
      var benFrames = ben.subscribe().makeAsyncIterator()
      var eveFrames = eve.subscribe().makeAsyncIterator()
      _ = try await read(&benFrames) { $0.isCaughtUp }
      _ = try await read(&eveFrames) { $0.isCaughtUp }
      let chat = try await ana.createChat(.group, [ben], title: "G")
      let made = try await read(&benFrames) { !$0.resumeToken.isEmpty }
      // The chat, its first note, and that one was added.
      #expect(made.count == 3)
      guard case .chatUpserted(let upserted)? = made[0].event else {
        Issue.record("no ChatUpserted")
        return
      }
      #expect(upserted.chat?.name == chat.name)
      #expect(upserted.chat?.selfField?.user == ben.name)
      try await ana.send("secret", to: chat)
      #expect(try await benFrames.next()?.message?.sequence == 2)
      let own = try await eve.createChat(.selfValue)
      let next = try #require(try await eveFrames.next())
      guard case .chatUpserted(let first)? = next.event else {
        Issue.record("Eve heard \(next)")
        return
      }
      #expect(first.chat?.name == own.name)
    }
  }

  @Test func aSnapshotAndThenTheTail() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      var chats: [Chat.Chat] = []
      for index in 0..<3 {
        let chat = try await ana.createChat(.group, [ben], title: "G\(index)")
        for number in 0..<4 { try await ana.send("\(number)", to: chat) }
        chats.append(chat)
      }
      let call = ben.subscribe {
        $0.snapshot = .with {
          $0.chatLimit = 2; $0.messagesPerChat = 3
        }
      }
      var frames = call.makeAsyncIterator()
      let start = try await read(&frames) { $0.isCaughtUp }
      #expect(start.count == 3)
      let snapshots = start.compactMap { frame -> Chat.ChatSnapshotEvent? in
        if case .chatSnapshot(let snapshot)? = frame.event { snapshot } else { nil }
      }
      #expect(snapshots.map(\.chat?.name) == [chats[2].name, chats[1].name])
      #expect(snapshots.allSatisfy { $0.messages.map(\.sequence) == [3, 4, 5] })
      #expect(snapshots.allSatisfy { $0.hasOlderMessages })
      #expect(start.map(\.resumeToken.isEmpty) == [true, false, false])
      try await ana.send("live", to: chats[0])
      #expect(try await frames.next()?.message?.sequence == 6)
    }
  }

  @Test("Rule 3: a stream goes on without a gap and without repeating")
  func resumesWithoutGapOrRepetitionAfterARestart() async throws {
    var template = Array("/tmp/vencejo-resume-XXXXXX".utf8CString)
    let path = String(cString: try #require(mkdtemp(&template)))
    var world = try World { $0.directory = path }
    var ana = try await world.person("ana")
    var ben = try await world.person("ben")
    let chat = try await ana.createChat(.direct, [ben])
    var token = try await ben.chat.listEvents(.init(), ben.options).resumeToken
    var seen: [Int64] = []
    for round in 0..<4 {
      for _ in 0..<3 { try await ana.send("\(round)", to: chat) }
      var frames = ben.subscribe { [token] in $0.resumeToken = token }.makeAsyncIterator()
      try await ana.send("\(round)", to: chat)
      let count = seen.count + 4
      while seen.count < count, let frame = try await frames.next() {
        if let message = frame.message { seen.append(message.sequence) }
        if !frame.resumeToken.isEmpty { token = frame.resumeToken }
      }
      await world.end()
      world = try World { $0.directory = path }
      ana = Person(channel: try world.channel(), name: ana.name, tokens: ana.tokens)
      ben = Person(channel: try world.channel(), name: ben.name, tokens: ben.tokens)
    }
    #expect(seen == Array(1...16))
    await world.end()
    for name in ["vencejo.sqlite", "lock"] { unlink(path + "/" + name) }
    rmdir(path)
  }

  @Test func aTokenThatIsNotHonouredIsAResetWithASnapshot() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      let good = try await ana.chat.listEvents(.init(), ana.options).resumeToken
      let now = world.backend.store.now
      let tokens = world.backend.store.tokens
      let old = tokens.resumeToken(.chat, position: 1, now: now - 15 * 86_400_000_000)
      let future = tokens.resumeToken(.chat, position: 1_000_000, now: now)
      for (token, reason) in [
        ("nonsense", Chat.ResetReason.tokenUnknown), (String(good.reversed()), .tokenUnknown),
        (old, .tokenExpired), (future, .serverRestoredFromBackup),
      ] {
        var frames = ana.subscribe { $0.resumeToken = token }.makeAsyncIterator()
        let start = try await read(&frames) { $0.isCaughtUp }
        #expect(start.first?.event == .reset(.init(reason: reason)))
        guard start.count == 3, case .chatSnapshot(let snapshot)? = start[1].event else {
          Issue.record("no snapshot: \(start)")
          continue
        }
        #expect(snapshot.chat?.name == chat.name)
      }
      let record = tokens.resumeToken(.record, position: 1, now: now)
      await expect(.invalidArgument, "TOKEN_MISMATCH") {
        for try await _ in ana.subscribe({ $0.resumeToken = record }) {}
      }
    }
  }

  @Test("Rule 22: a silent stream says that it lives")
  func heartbeatsCarryAFreshToken() async throws {
    try await withWorld({ $0.heartbeats = .milliseconds(20) ... .seconds(60) }) { world in
      let ana = try await world.person("ana")
      let eve = try await world.person("eve")
      let chat = try await ana.createChat(.selfValue)
      let call = eve.subscribe { $0.heartbeatInterval = .with { $0.nanos = 1 } }
      let start = try await Self.position(call.first { $0.isCaughtUp }, world)
      try await ana.send("not for Eve", to: chat)
      // The token moves on though nothing concerns Eve.
      var frames = 0
      for try await frame in call {
        guard case .heartbeat(let beat)? = frame.event else {
          Issue.record("no heartbeat but \(frame)")
          break
        }
        #expect((beat.serverTime?.seconds ?? 0) > 1_700_000_000)
        frames += 1
        if try Self.position(frame, world) == start + 1, frames > 1 { break }
      }
    }
  }

  private static func position(_ frame: Chat.SubscribeResponse?, _ world: World) throws -> Int64 {
    let store = world.backend.store
    return try store.tokens.position(
      ofResumeToken: frame?.resumeToken ?? "", .chat, now: store.now)
  }

  @Test("Rule 12: a revoked session ends its streams at once")
  func signingOutEndsTheStreamAtOnce() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      var frames = ana.subscribe().makeAsyncIterator()
      _ = try await read(&frames) { $0.isCaughtUp }
      _ = try await ana.auth.signOut(.init(), ana.options)
      let last = try await frames.next()
      #expect(last?.event == .closing(.with { $0.reason = .sessionRevoked }))
      await expect(.unauthenticated, "SESSION_REVOKED") { _ = try await frames.next() }
    }
  }

  @Test("Rule 21: clients of a server that goes come back at different times")
  func drainingSaysGoodbye() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      var frames = ana.subscribe().makeAsyncIterator()
      _ = try await read(&frames) { $0.isCaughtUp }
      world.backend.drain()
      guard case .closing(let closing)? = try await frames.next()?.event else {
        Issue.record("no Closing")
        return
      }
      #expect(closing.reason == .serverDraining)
      #expect((0...10).contains(closing.retryDelay?.seconds ?? -1))
      #expect(try await frames.next() == nil)
      var late = ana.subscribe().makeAsyncIterator()
      let said = try await read(&late) {
        if case .closing? = $0.event { true } else { false }
      }
      #expect(said.count <= 2)
    }
  }

  @Test("Limit: streams of a session")
  func aSessionHasEightStreams() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      var oldest = ana.subscribe().makeAsyncIterator()
      _ = try await read(&oldest) { $0.isCaughtUp }
      var others: [Frames] = []
      for _ in 0..<8 {
        var frames = ana.subscribe().makeAsyncIterator()
        _ = try await read(&frames) { $0.isCaughtUp }
        others.append(frames)
      }
      #expect(
        try await oldest.next()?.event
          == .closing(.with { $0.reason = .replacedByNewerStream }))
      #expect(try await oldest.next() == nil)
    }
  }

  @Test("Rule 18: who reads slowly reads the log and misses nothing")
  func oneWhoReadsSlowlyMissesNothing() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      var frames = ben.subscribe().makeAsyncIterator()
      _ = try await read(&frames) { $0.isCaughtUp }
      // Far more than the windows and buffers on the way hold, and nobody reads meanwhile.
      let text = String(repeating: "x", count: 60_000)
      for start in stride(from: 0, to: 200, by: 20) {
        try await withThrowingTaskGroup { group in
          for _ in start..<start + 20 {
            group.addTask { try await ana.send(text, to: chat) }
          }
          try await group.waitForAll()
        }
      }
      var seen: [Int64] = []
      while seen.count < 200, let frame = try await frames.next() {
        if let message = frame.message { seen.append(message.sequence) }
      }
      #expect(seen == Array(1...200))
    }
  }

  @Test func aStreamMayAskForSomeChats() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let wanted = try await ana.createChat(.group, [ben], title: "wanted")
      let other = try await ana.createChat(.group, [ben], title: "other")
      let own = try await ana.createChat(.selfValue)
      var frames = ben.subscribe { $0.chats = [wanted.name] }.makeAsyncIterator()
      _ = try await read(&frames) { $0.isCaughtUp }
      try await ana.send("other", to: other)
      try await ana.send("wanted", to: wanted)
      #expect(try await frames.next()?.message?.name.hasPrefix(wanted.name) == true)
      await expect(.notFound, "CHAT_NOT_FOUND") {
        for try await _ in ben.subscribe({ $0.chats = [own.name] }) {}
      }
    }
  }

  /// Many write while many listen, some of them come and go: each sees each message once, in
  /// order.
  @Test func aFloodReachesEverybodyInOrder() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      var people: [Person] = [ana]
      for index in 0..<4 { people.append(try await world.person("user\(index)")) }
      let chat = try await ana.createChat(.group, Array(people.dropFirst()), title: "G")
      let count: Int64 = 200
      let start = try await ana.chat.listEvents(.init(), ana.options).resumeToken
      try await withThrowingTaskGroup { [people] group in
        for (index, person) in people.enumerated() {
          group.addTask {
            var token = start
            var seen: [Int64] = [1]
            while seen.last != count + 1 {
              var left = index == 0 ? Int.max : 17 * index
              for try await frame in person.subscribe({ [token] in $0.resumeToken = token }) {
                if let message = frame.message, message.sequence > 1 {
                  seen.append(message.sequence)
                }
                left -= 1
                // Inside a transaction there is no token to go on from.
                guard !frame.resumeToken.isEmpty else { continue }
                token = frame.resumeToken
                if left <= 0 || seen.last == count + 1 { break }
              }
            }
            #expect(seen == Array(1...count + 1))
          }
        }
        group.addTask {
          try await withThrowingTaskGroup { senders in
            for person in people.prefix(4) {
              senders.addTask {
                for index in 0..<50 { try await person.send("\(index)", to: chat) }
              }
            }
            try await senders.waitForAll()
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

extension Chat.SubscribeResponse {
  var isCaughtUp: Bool { if case .caughtUp? = event { true } else { false } }
  var message: Chat.Message? {
    if case .messageCreated(let created)? = event { created.message } else { nil }
  }
}
