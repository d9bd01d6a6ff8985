import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// What a live stream tells of changes to messages is what a replay would: the model found that
/// it was not.
@Suite struct LiveVisibilityTests {
  typealias Frames = ServerStreamingCall<Chat.SubscribeResponse>.AsyncIterator

  private func caughtUp(_ frames: inout Frames) async throws {
    while let frame = try await frames.next(), !frame.isCaughtUp {}
  }

  private func react(_ emoji: String, to message: Chat.Message, by person: Person) async throws {
    _ = try await person.chat.setReaction(
      .with {
        $0.message = message.name
        $0.emoji = emoji
      }, person.options)
  }

  @Test func newcomersHearNoChangesOfWhatTheyMayNotSee() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.group, [], title: "G")
      let secret = try await ana.send("secret", to: chat)
      _ = try await ana.chat.addMembers(
        .with {
          $0.parent = chat.name
          $0.users = [ben.name]
        }, ana.options)
      let hidden = try await ana.send("hidden by Ben", to: chat)
      _ = try await ben.chat.deleteMessages(
        .with {
          $0.parent = chat.name
          $0.ranges = [
            .with {
              $0.firstSequence = hidden.sequence
              $0.lastSequence = hidden.sequence
            }
          ]
          $0.scope = .forMe
        }, ben.options)
      var frames = ben.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      _ = try await ana.chat.editMessage(
        .with {
          $0.name = secret.name
          $0.content = .with { $0.kind = .text(.with { $0.text = "another secret" }) }
        }, ana.options)
      try await react("👍", to: secret, by: ana)
      try await react("👍", to: hidden, by: ana)
      let open = try await ana.send("open", to: chat)
      try await react("👍", to: open, by: ana)
      #expect(try await frames.next()?.message?.name == open.name)
      guard case .reactionChanged(let event)? = try await frames.next()?.event else {
        Issue.record("no reaction")
        return
      }
      #expect(event.message == open.name)
    }
  }

  @Test func aBlockHidesWhatWasSentDuringItAndNothingElse() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.group, [ben], title: "G")
      let before = try await ben.send("before", to: chat)
      var frames = ana.subscribe().makeAsyncIterator()
      try await caughtUp(&frames)
      _ = try await ana.chat.blockUser(.with { $0.user = ben.name }, ana.options)
      let during = try await ben.send("during", to: chat)
      try await react("👍", to: before, by: ben)
      guard case .reactionChanged(let first)? = try await frames.next()?.event else {
        Issue.record("no reaction to what was sent before the block")
        return
      }
      #expect(first.message == before.name)
      _ = try await ana.chat.unblockUser(.with { $0.user = ben.name }, ana.options)
      try await react("👍", to: during, by: ben)
      let after = try await ben.send("after", to: chat)
      #expect(try await frames.next()?.message?.name == after.name)
    }
  }
}
