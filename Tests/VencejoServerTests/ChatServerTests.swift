import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

@Suite struct ChatServerTests {
  @Test func aConversation() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      #expect(chat.peer == ben.name)
      #expect(chat.selfField?.role == .member)
      let id = UUID.v7()
      let message = try await ana.send("Hola", to: chat, id: id)
      #expect(message.name == "\(chat.name)/messages/\(id)")
      #expect(message.mine && message.deliveryState == .sent && message.sequence == 1)

      let listed = try await ben.chat.listChats(.init(), ben.options)
      #expect(listed.chats.count == 1)
      #expect(listed.chats[0].unread?.unreadCount == 1)
      #expect(listed.chats[0].lastMessage?.mine == false)
      #expect(listed.chats[0].peer == ana.name)
      #expect(!listed.resumeToken.isEmpty)

      let read = try await ben.chat.markRead(
        .with {
          $0.chat = chat.name; $0.upToSequence = 1
        }, ben.options)
      #expect(read.unread?.unreadCount == 0 && read.readSequence == 1)
      let ticked = try await ana.chat.getMessage(.with { $0.name = message.name }, ana.options)
      #expect(ticked.message?.deliveryState == .read)

      let answer = try await ben.chat.sendMessage(
        .with {
          $0.parent = chat.name
          $0.messageId = "\(UUID.v7())"
          $0.content = .with { $0.kind = .text(.with { $0.text = "¿Qué tal?" }) }
          $0.replyTo = message.name
        }, ben.options)
      #expect(answer.message?.quoted?.excerpt == "Hola")
      #expect(answer.message?.quoted?.sender == ana.name)
      let page = try await ana.chat.listMessages(.with { $0.parent = chat.name }, ana.options)
      #expect(page.messages.map(\.sequence) == [1, 2])
      #expect(page.messages.map(\.mine) == [true, false])
      #expect(page.olderPageToken.isEmpty && page.newerPageToken.isEmpty)
    }
  }

  @Test func sendingAgainIsADuplicate() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      let request = Chat.SendMessageRequest.with {
        $0.parent = chat.name
        $0.messageId = "\(UUID.v7())"
        $0.content = .with { $0.kind = .text(.with { $0.text = "once" }) }
      }
      let first = try await ana.chat.sendMessage(request, ana.options)
      let second = try await ana.chat.sendMessage(request, ana.options)
      #expect(!first.duplicate && second.duplicate)
      #expect(first.message == second.message)
    }
  }

  @Test func groupsAndPeople() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let response = try await ana.chat.createChat(
        .with {
          $0.chat = .with {
            $0.kind = .group; $0.title = "Trip"
          }
          $0.members = [ben.name, "users/\(UUID.v7())"]
        }, ana.options)
      #expect(response.created)
      #expect(response.failures.map(\.status?.code) == [5])
      #expect(response.chat?.memberCount == 2)
      #expect(response.chat?.selfField?.role == .owner)
      guard case .system(let system)? = response.chat?.lastMessage?.content?.kind else {
        Issue.record("no system message")
        return
      }
      #expect(system.action == .chatCreated)
      #expect(system.actor == ana.name)
      #expect(system.subjects == [ben.name])

      let found = try await ben.chat.searchProfiles(.with { $0.query = "an" }, ben.options)
      #expect(found.profiles.map(\.user) == [ana.name])
      let both = try await ben.chat.batchGetProfiles(
        .with { $0.names = [ana.name + "/profile", "users/me/profile"] }, ben.options)
      #expect(both.profiles.map(\.handle) == ["ana", "ben"])
      let one = try await ben.chat.getProfile(
        .with { $0.name = found.profiles[0].name }, ben.options)
      #expect(one.profile == found.profiles[0])
      await expect(.notFound, "USER_NOT_FOUND") {
        _ = try await ben.chat.batchGetProfiles(
          .with { $0.names = [ana.name, "users/\(UUID.v7())"] }, ben.options)
      }
    }
  }

  @Test func saysWhatIsWrong() async throws {
    try await withWorld { world in
      let (ana, eve) = (try await world.person("ana"), try await world.person("eve"))
      let chat = try await ana.createChat(.selfValue)
      await expect(.invalidArgument, "EMPTY_MESSAGE") { try await ana.send(" \n", to: chat) }
      await expect(.invalidArgument, "MESSAGE_TOO_LONG") {
        try await ana.send(String(repeating: "x", count: 65_537), to: chat)
      }
      await expect(.notFound, "CHAT_NOT_FOUND") { try await eve.send("x", to: chat) }
      await expect(.notFound, "CHAT_NOT_FOUND") {
        _ = try await eve.chat.getChat(.with { $0.name = chat.name }, eve.options)
      }
      await expect(.invalidArgument, "BAD_NAME") {
        _ = try await ana.chat.getChat(.with { $0.name = "chats/1" }, ana.options)
      }
      await expect(.invalidArgument, "BAD_MESSAGE_ID") {
        _ = try await ana.chat.sendMessage(
          .with {
            $0.parent = chat.name; $0.messageId = "1"
          }, ana.options)
      }
      await expect(.invalidArgument, "BAD_PAGE_SIZE") {
        _ = try await ana.chat.listChats(.with { $0.pageSize = -1 }, ana.options)
      }
      await expect(.invalidArgument, "BAD_PAGE_TOKEN") {
        _ = try await ana.chat.listMessages(
          .with {
            $0.parent = chat.name; $0.pageToken = "x"
          }, ana.options)
      }
      await expect(.invalidArgument, "BAD_CHAT_KIND") { _ = try await ana.createChat(.unspecified) }
      await expect(.invalidArgument, "TOKEN_MISMATCH") {
        _ = try await ana.chat.listEvents(.with { $0.resumeToken = "x" }, ana.options)
      }
    }
  }

  @Test func listEventsTellsWhatSubscribeTells() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let start = try await ben.chat.listEvents(.init(), ben.options)
      #expect(start.events.isEmpty && !start.resumeToken.isEmpty && !start.moreAvailable)
      let chat = try await ana.createChat(.group, [ben], title: "G")
      for index in 0..<5 { try await ana.send("\(index)", to: chat) }
      var token = start.resumeToken
      var events: [Chat.SubscribeResponse] = []
      var pages = 0
      while true {
        let page = try await ben.chat.listEvents(
          .with {
            $0.resumeToken = token; $0.pageSize = 2
          }, ben.options)
        events += page.events
        token = page.resumeToken
        pages += 1
        if !page.moreAvailable { break }
      }
      #expect(pages >= 3)
      #expect(events.count == 8)
      // Frames of one transaction together, and only the last with a token.
      #expect(
        events.map(\.resumeToken.isEmpty) == [true, true] + Array(repeating: false, count: 6))
      let stream = ben.subscribe { $0.resumeToken = start.resumeToken }
      var streamed: [Chat.SubscribeResponse] = []
      for try await frame in stream {
        if case .caughtUp(let caughtUp)? = frame.event {
          #expect(caughtUp.replayedEventCount == 8)
          #expect(caughtUp.totalUnreadCount == 5)
          break
        }
        streamed.append(frame)
      }
      #expect(streamed.map(\.event) == events.map(\.event))
      #expect(streamed.allSatisfy { $0.historical })
    }
  }
}
