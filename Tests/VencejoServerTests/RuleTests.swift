import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

@testable import VencejoServer

/// Rules of the protocol page that only streams show.
@Suite struct RuleTests {
  typealias Frames = ServerStreamingCall<Chat.SubscribeResponse>.AsyncIterator

  private func caughtUp(_ frames: inout Frames) async throws {
    while let frame = try await frames.next(), !frame.isCaughtUp {}
  }

  @Test("Rule 15: of the receipts of one member within a flush only the furthest is sent")
  func receiptsAreCoalesced() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      for index in 1...50 { try await ana.send("\(index)", to: chat) }
      var frames = ana.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      // In one commit of many, faster than a flush.
      try await withThrowingTaskGroup { group in
        for index in 1...50 {
          group.addTask {
            _ = try await ben.chat.markRead(
              .with {
                $0.chat = chat.name
                $0.upToSequence = Int64(index)
              }, ben.options)
          }
        }
        try await group.waitForAll()
      }
      var receipts: [Chat.ReceiptMovedEvent] = []
      var tokens: [Int64] = []
      while receipts.last?.readSequence != 50, let frame = try await frames.next() {
        guard case .receiptMoved(let event)? = frame.event else { continue }
        receipts.append(event)
        tokens.append(
          try world.backend.store.tokens.position(
            ofResumeToken: frame.resumeToken, .chat, now: world.backend.store.now))
      }
      #expect(receipts.map(\.readSequence) == receipts.map(\.readSequence).sorted())
      #expect(tokens == tokens.sorted())
      #expect(receipts.last?.deliveredSequence == 50)
    }
  }

  @Test("Rule 15: a receipt that waits comes before the message after it")
  func receiptsKeepTheirPlace() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      try await ana.send("one", to: chat)
      var frames = ana.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      _ = try await ben.chat.markRead(
        .with {
          $0.chat = chat.name
          $0.upToSequence = 1
        }, ben.options)
      try await ben.send("two", to: chat)
      var kinds: [String] = []
      while kinds.count < 2, let frame = try await frames.next() {
        switch frame.event {
        case .receiptMoved?: kinds.append("receipt")
        case .messageCreated?: kinds.append("message")
        default: break
        }
      }
      #expect(kinds == ["receipt", "message"])
    }
  }

  @Test("Rule 18: a stream whose client takes nothing for too long is ended, and resumes")
  func slowConsumersAreEnded() async throws {
    try await withWorld({
      $0.heartbeats = .milliseconds(20) ... .seconds(60)
      $0.streamPatience = .milliseconds(200)
    }) { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      let call = ben.subscribe { $0.heartbeatInterval = .with { $0.nanos = 20_000_000 } }
      var frames = call.makeAsyncIterator()
      try await caughtUp(&frames)
      let text = String(repeating: "x", count: 60_000)
      for start in stride(from: 0, to: 200, by: 20) {
        try await withThrowingTaskGroup { group in
          for _ in start..<start + 20 { group.addTask { try await ana.send(text, to: chat) } }
          try await group.waitForAll()
        }
      }
      // The patience is over when the server has let go of the stream.
      while world.backend.streams.count > 0 { await Task.yield() }
      var token = ""
      var seen: [Int64] = []
      await expect(.resourceExhausted, "SLOW_CONSUMER") {
        while let frame = try await frames.next() {
          if !frame.resumeToken.isEmpty { token = frame.resumeToken }
          if let message = frame.message { seen.append(message.sequence) }
        }
      }
      #expect(!seen.isEmpty && seen.count < 200)
      var rest = ben.subscribe { [token] in $0.resumeToken = token }.makeAsyncIterator()
      while seen.count < 200, let frame = try await rest.next() {
        if let message = frame.message { seen.append(message.sequence) }
      }
      #expect(seen == Array(1...200))
    }
  }

  @Test("Rule 30: tokens that came before a stream broke stay good")
  func tokensOfBrokenStreams() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      let start = try await ben.chat.listEvents(.init(), ben.options).resumeToken
      for index in 1...30 { try await ana.send("\(index)", to: chat) }
      var token = start
      var seen: [Int64] = []
      // Broken off in the middle of the replay, again and again.
      while seen.count < 30 {
        let call = ben.subscribe { [token] in $0.resumeToken = token }
        var frames = call.makeAsyncIterator()
        for _ in 0..<7 where seen.count < 30 {
          guard let frame = try await frames.next() else { break }
          if !frame.resumeToken.isEmpty { token = frame.resumeToken }
          if let message = frame.message { seen.append(message.sequence) }
        }
        call.cancel()
      }
      #expect(seen == Array(1...30))
    }
  }

  @Test func aPageTokenComesWithoutAnAnchor() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      for index in 1...5 { try await ana.send("\(index)", to: chat) }
      let page = try await ana.chat.listMessages(
        .with {
          $0.parent = chat.name
          $0.pageSize = 2
        }, ana.options)
      await expect(.invalidArgument, "ANCHOR_AND_TOKEN") {
        _ = try await ana.chat.listMessages(
          .with {
            $0.parent = chat.name
            $0.pageSize = 2
            $0.pageToken = page.olderPageToken
            $0.anchor = .beforeSequence(3)
          }, ana.options)
      }
    }
  }
}
