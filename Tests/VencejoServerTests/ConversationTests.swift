import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer

@Suite struct ConversationTests {
  typealias Frames = ServerStreamingCall<Chat.SubscribeResponse>.AsyncIterator

  private func caughtUp(_ frames: inout Frames) async throws {
    while let frame = try await frames.next(), !frame.isCaughtUp {}
  }

  @Test func changesReachEverybodyLiveAndAlike() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.group, [ben], title: "G")
      let message = try await ana.send("helo", to: chat)
      let start = try await ben.chat.listEvents(.init(), ben.options).resumeToken
      var frames = ben.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      _ = try await ana.chat.editMessage(
        .with {
          $0.name = message.name
          $0.content = .with { $0.kind = .text(.with { $0.text = "hello" }) }
        }, ana.options)
      _ = try await ana.chat.setReaction(
        .with {
          $0.message = message.name
          $0.emoji = "👍"
        }, ana.options)
      _ = try await ben.chat.setMessageStarred(
        .with {
          $0.name = message.name
          $0.starred = true
        }, ben.options)
      _ = try await ana.chat.updateChatSettings(
        .with {
          $0.settings = .with {
            $0.name = chat.name + "/settings"
            $0.archived = true
          }
          $0.updateMask = Google.FieldMask("archived")
        }, ana.options)
      _ = try await ana.chat.deleteMessages(
        .with {
          $0.parent = chat.name
          $0.ranges = [
            .with {
              $0.firstSequence = 2
              $0.lastSequence = 2
            }
          ]
          $0.scope = .forEveryone
        }, ana.options)
      var live: [Chat.SubscribeResponse] = []
      while live.count < 5, let frame = try await frames.next() { live.append(frame) }
      guard live.count == 5, case .messageUpdated(let updated)? = live[0].event,
        case .reactionChanged(let reaction)? = live[1].event,
        case .messageUpdated(let starred)? = live[2].event,
        case .messagesDeleted(let deleted)? = live[3].event,
        case .unreadChanged(let unread)? = live[4].event
      else {
        Issue.record("\(live)")
        return
      }
      #expect(updated.changedFields?.paths.contains("content") == true)
      #expect(updated.message?.mine == false && updated.message?.editCount == 1)
      #expect(reaction.user == ana.name && reaction.reactions.map(\.count) == [1])
      #expect(starred.changedFields?.paths == ["starred", "etag"])
      #expect(starred.message?.starred == true)
      #expect(deleted.actor == ana.name && deleted.scope == .forEveryone)
      #expect(unread.unread?.unreadCount == 0)
      // A replay of the same stretch ends with the same state.
      let page = try await ben.chat.listEvents(.with { $0.resumeToken = start }, ben.options)
      #expect(page.events.count == 5)
      guard case .messagesDeleted(let replayed)? = page.events[3].event else { return }
      #expect(replayed == deleted)
    }
  }

  @Test func membershipCutsTheStreamAtThePosition() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.group, [], title: "G")
      var frames = ben.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      try await ana.send("before", to: chat)
      _ = try await ana.chat.addMembers(
        .with {
          $0.parent = chat.name
          $0.users = [ben.name]
        }, ana.options)
      try await ana.send("during", to: chat)
      _ = try await ana.chat.removeMember(
        .with { $0.name = "\(chat.name)/members/\(ben.name.dropFirst(6))" }, ana.options)
      try await ana.send("after", to: chat)
      let own = try await ben.createChat(.selfValue)
      var heard: [Chat.SubscribeResponse] = []
      while let frame = try await frames.next() {
        if case .chatUpserted(let event)? = frame.event, event.chat?.name == own.name { break }
        heard.append(frame)
      }
      let kinds = heard.map { frame -> String in
        switch frame.event {
        case .chatUpserted?: "chat"
        case .messageCreated(let event)?:
          if case .text(let text)? = event.message?.content?.kind { text.text } else { "note" }
        case .memberChanged?: "member"
        case .notificationCreated?: "notification"
        case .chatRemoved(let event)?: "\(event.reason)"
        default: "?"
        }
      }
      #expect(
        kinds == [
          "chat", "note", "member", "notification", "during", "note", "member",
          "\(Chat.ChatRemovalReason.removed)",
        ])
      #expect(heard.last?.resumeToken.isEmpty == false)
    }
  }

  @Test("Rule 13: blocked senders are cut live too")
  func blockedSendersAreCutLive() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let cleo = try await world.person("cleo")
      let chat = try await ana.createChat(.group, [ben, cleo], title: "G")
      var frames = ana.subscribe { $0.includeEphemeral = true }.makeAsyncIterator()
      try await caughtUp(&frames)
      _ = try await ana.chat.blockUser(.with { $0.user = ben.name }, ana.options)
      try await ben.send("hidden", to: chat)
      _ = try await ben.chat.sendTyping(
        .with {
          $0.chat = chat.name
          $0.state = .typing
        }, ben.options)
      try await cleo.send("seen", to: chat)
      #expect(try await frames.next()?.message?.sender == cleo.name)
      _ = try await ana.chat.unblockUser(.with { $0.user = ben.name }, ana.options)
      try await ben.send("again", to: chat)
      let next = try #require(try await frames.next()?.message)
      #expect(next.sender == ben.name && next.sequence == 4)
    }
  }

  @Test func typingIsToldAndNotKept() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let eve = try await world.person("eve")
      let chat = try await ana.createChat(.direct, [ben])
      let start = try await ben.chat.listEvents(.init(), ben.options).resumeToken
      var frames = ben.subscribe { $0.includeEphemeral = true }.makeAsyncIterator()
      var quiet = ben.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      try await caughtUp(&quiet)
      let typing = Chat.SendTypingRequest.with {
        $0.chat = chat.name
        $0.state = .typing
      }
      _ = try await ana.chat.sendTyping(typing, ana.options)
      await expect(.notFound, "CHAT_NOT_FOUND") {
        _ = try await eve.chat.sendTyping(typing, eve.options)
      }
      await expect(.invalidArgument, "BAD_TYPING_STATE") {
        _ = try await ana.chat.sendTyping(.with { $0.chat = chat.name }, ana.options)
      }
      try await ana.send("done", to: chat)
      var seen: [Chat.SubscribeResponse] = []
      while let frame = try await frames.next() {
        seen.append(frame)
        if frame.message != nil { break }
      }
      guard case .typing(let event)? = seen.first?.event, seen.count == 2 else {
        Issue.record("\(seen)")
        return
      }
      #expect(event.user == ana.name && event.chat == chat.name && event.ttl != nil)
      #expect(seen[0].resumeToken.isEmpty)
      // Who did not ask for it hears nothing of it, nor does a replay.
      #expect(try await quiet.next()?.message != nil)
      let page = try await ben.chat.listEvents(.with { $0.resumeToken = start }, ben.options)
      #expect(page.events.count == 1)
    }
  }

  @Test("Rule 28: presence does not flap")
  func presenceIsDebounced() async throws {
    try await withWorld({ $0.presenceDebounce = .milliseconds(300) }) { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      _ = try await ana.createChat(.direct, [ben])
      var frames = ben.subscribe { $0.includeEphemeral = true }.makeAsyncIterator()
      try await caughtUp(&frames)
      func next() async throws -> Chat.PresenceState? {
        while let frame = try await frames.next() {
          if case .presence(let event)? = frame.event { return event.presence?.state }
        }
        return nil
      }
      // Three streams one after the other: one coming, and after the last one going.
      for round in 0..<3 {
        var own = ana.subscribe { $0.includeEphemeral = true }.makeAsyncIterator()
        try await caughtUp(&own)
        if round == 0 { #expect(try await next() == .online) }
      }
      #expect(try await next() == .offline)
      let profile = try await ben.chat.getProfile(
        .with { $0.name = ana.name + "/profile" }, ben.options)
      #expect(profile.profile?.presence?.state == .offline)
      #expect(profile.profile?.presence?.lastSeenTime != nil)
    }
  }

  @Test func aStreamMarksWhatADeviceReceived() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      var frames = ana.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      var device = ben.subscribe { $0.autoMarkDelivered = true }.makeAsyncIterator()
      try await caughtUp(&device)
      for index in 0..<5 { try await ana.send("\(index)", to: chat) }
      var delivered: Int64 = 0
      var receipts = 0
      while delivered < 5, let frame = try await frames.next() {
        if case .receiptMoved(let receipt)? = frame.event {
          #expect(receipt.readSequence == 0 && receipt.user == ben.name)
          delivered = receipt.deliveredSequence
          receipts += 1
        }
      }
      #expect(delivered == 5 && receipts <= 5)
      let page = try await ana.chat.listMessages(.with { $0.parent = chat.name }, ana.options)
      #expect(page.messages.allSatisfy { $0.deliveryState == .delivered })
    }
  }

  @Test func contentOfEveryKindComesBackAsItWas() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      let contents: [Chat.MessageContent] = [
        .with {
          $0.kind = .text(
            .with {
              $0.text = "@ana"
              $0.mentions = [
                .with {
                  $0.user = ana.name
                  $0.length = 4
                }
              ]
            })
        },
        .with {
          $0.kind = .location(
            .with {
              $0.latitudeDegrees = 40.4168
              $0.longitudeDegrees = -3.7038
              $0.label = "Sol"
            })
        },
        .with {
          $0.kind = .contact(
            .with {
              $0.displayName = "Ben"
              $0.vcard = [1, 2, 3]
            })
        },
        .with {
          $0.kind = .custom(
            .with {
              $0.typeUrl = "example.com/x"
              $0.data = [0, 255]
              $0.fallbackText = "something"
            })
        },
        .with {
          $0.kind = .poll(
            .with {
              $0.question = "?"
              $0.options = [
                .with {
                  $0.optionId = 1
                  $0.text = "a"
                },
                .with {
                  $0.optionId = 2
                  $0.text = "b"
                },
              ]
            })
        },
      ]
      for content in contents {
        let sent = try await ana.chat.sendMessage(
          .with {
            $0.parent = chat.name
            $0.messageId = "\(UUID.v7())"
            $0.content = content
          }, ana.options)
        #expect(sent.message?.content == content)
        let name = try #require(sent.message?.name)
        let read = try await ana.chat.getMessage(.with { $0.name = name }, ana.options)
        #expect(read.message?.content == content)
      }
      for bad in [Double.nan, .infinity, 91] {
        await expect(.invalidArgument, "BAD_LOCATION") {
          _ = try await ana.chat.sendMessage(
            .with {
              $0.parent = chat.name
              $0.messageId = "\(UUID.v7())"
              $0.content = .with { $0.kind = .location(.with { $0.latitudeDegrees = bad }) }
            }, ana.options)
        }
      }
    }
  }

  @Test func anExportIsWhatItsReaderSees() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      for index in 1...205 { try await ana.send("text \(index)", to: chat) }
      _ = try await ben.chat.deleteMessages(
        .with {
          $0.parent = chat.name
          $0.ranges = [
            .with {
              $0.firstSequence = 2
              $0.lastSequence = 2
            }
          ]
          $0.scope = .forMe
        }, ben.options)
      func export(_ format: Chat.ExportFormat, after: Int64 = 0) async throws -> ([String], [Int64])
      {
        var text = ""
        var last: [Int64] = []
        let request = Chat.ExportChatRequest.with {
          $0.name = chat.name
          $0.format = format
          $0.afterSequence = after
        }
        for try await frame in ben.chat.exportChat(request, ben.options) {
          text += String(decoding: frame.chunk, as: UTF8.self)
          last.append(frame.lastSequence)
        }
        return (text.split(separator: "\n").map(String.init), last)
      }
      let (lines, last) = try await export(.ndjson)
      // A header first.
      #expect(lines.count == 205 && last == [0, 201, 205])
      #expect(lines[0].hasPrefix("{\"header\":"))
      #expect(lines.allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") })
      #expect(lines[2].contains("\"text 3\""))
      let (rest, _) = try await export(.text, after: 203)
      #expect(rest.map { String($0.suffix(13)) } == ["ana: text 204", "ana: text 205"])
      #expect(rest[0].hasPrefix("[20"))
      await expect(.invalidArgument, "BAD_FORMAT") { _ = try await export(.unspecified) }
    }
  }

  @Test func updatesNeedAMaskThatIsKnown() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.group, [], title: "G")
      await expect(.invalidArgument, "BAD_UPDATE_MASK") {
        _ = try await ana.chat.updateChat(
          .with { $0.chat = .with { $0.name = chat.name } }, ana.options)
      }
      await expect(.invalidArgument, "BAD_UPDATE_MASK") {
        _ = try await ana.chat.updateChat(
          .with {
            $0.chat = .with { $0.name = chat.name }
            $0.updateMask = Google.FieldMask("member_count")
          }, ana.options)
      }
      let updated = try await ana.chat.updateChat(
        .with {
          $0.chat = .with {
            $0.name = chat.name
            $0.title = "New"
            $0.description = "not in the mask"
            $0.policy = .with { $0.sendMessages = .admin }
          }
          $0.updateMask = Google.FieldMask("title", "policy")
        }, ana.options)
      #expect(updated.chat?.title == "New" && updated.chat?.description == "")
      #expect(updated.chat?.policy?.sendMessages == .admin)
      #expect(updated.chat?.policy?.addMembers == .member)
    }
  }
}
