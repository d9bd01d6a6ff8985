import Testing
import VencejoAPI
import VencejoProtobuf

@testable import VencejoClient

/// The cache as a value: frames in, changes and state out.
@Suite struct ChatContentsTests {
  private let me = "users/me-1"
  private let other = "users/other"

  private func chat(read: Int64 = 0, last: Int64 = 0, unread: Int32 = 0) -> Chat.Chat {
    var chat = Chat.Chat(name: "chats/a")
    chat.lastSequence = last
    chat.selfField = Chat.Member()
    chat.selfField?.readSequence = read
    chat.unread = Chat.UnreadState(unreadCount: unread)
    return chat
  }

  private func message(_ sequence: Int64, from sender: String) -> Chat.Message {
    var message = Chat.Message(name: "chats/a/messages/m\(sequence)")
    message.sequence = sequence
    message.sender = sender
    message.content = .init(kind: .text(.init(text: "text \(sequence)")))
    return message
  }

  private func created(_ sequence: Int64, from sender: String) -> Chat.SubscribeResponse {
    var frame = Chat.SubscribeResponse()
    frame.event = .messageCreated(.init(message: message(sequence, from: sender)))
    return frame
  }

  private func snapshot(_ chat: Chat.Chat, _ messages: [Chat.Message] = [])
    -> Chat.SubscribeResponse
  {
    var frame = Chat.SubscribeResponse()
    frame.event = .chatSnapshot(.init(chat: chat, messages: messages))
    return frame
  }

  private func frame(_ event: Chat.SubscribeResponse.Event) -> Chat.SubscribeResponse {
    var frame = Chat.SubscribeResponse()
    frame.event = event
    return frame
  }

  @Test func unreadFollowsTheRules() {
    var contents = ChatContents()
    _ = contents.apply([snapshot(chat(read: 2, last: 2))], token: "1", user: me)
    _ = contents.apply(
      [created(3, from: other), created(4, from: ""), created(5, from: other)], token: "2", user: me
    )
    // System messages (no sender) do not count.
    #expect(contents.chats["chats/a"]?.chat.unread?.unreadCount == 2)
    #expect(contents.chats["chats/a"]?.chat.unread?.firstUnreadSequence == 3)
    // Sending reads up to what was sent.
    _ = contents.apply([created(6, from: me)], token: "3", user: me)
    #expect(contents.chats["chats/a"]?.chat.unread?.unreadCount == 0)
    #expect(contents.chats["chats/a"]?.chat.selfField?.readSequence == 6)
    // The server's word goes before our count.
    _ = contents.apply(
      [
        created(7, from: other),
        frame(.unreadChanged(.init(chat: "chats/a", unread: .init(unreadCount: 9)))),
      ], token: "4", user: me)
    #expect(contents.chats["chats/a"]?.chat.unread?.unreadCount == 9)
    #expect(contents.token == "4")
  }

  @Test func countsAreCapped() {
    var contents = ChatContents()
    _ = contents.apply([snapshot(chat(last: 10, unread: 999))], token: "1", user: me)
    _ = contents.apply([created(11, from: other)], token: "2", user: me)
    #expect(contents.chats["chats/a"]?.chat.unread?.unreadCount == 999)
    #expect(contents.chats["chats/a"]?.chat.unread?.capped == true)
  }

  @Test func repeatedFramesChangeNothing() {
    var contents = ChatContents()
    _ = contents.apply(
      [snapshot(chat(read: 0, last: 1, unread: 1), [message(1, from: other)])], token: "1", user: me
    )
    let once = contents.apply([created(2, from: other)], token: "2", user: me)
    let twice = contents.apply(
      [created(2, from: other), created(1, from: other)], token: "2", user: me)
    #expect(once.count == 1)
    #expect(twice.isEmpty)
    #expect(contents.chats["chats/a"]?.messages.map(\.sequence) == [1, 2])
    #expect(contents.chats["chats/a"]?.chat.unread?.unreadCount == 2)
  }

  @Test func aHoleDropsWhatNoLongerJoins() {
    var contents = ChatContents()
    _ = contents.apply([snapshot(chat(last: 1), [message(1, from: other)])], token: "1", user: me)
    _ = contents.apply([created(5, from: other)], token: "2", user: me)
    #expect(contents.chats["chats/a"]?.messages.map(\.sequence) == [5])
  }

  @Test func resetEmptiesAndFillsInOneStep() {
    var contents = ChatContents()
    var second = Chat.Chat(name: "chats/b")
    second.lastSequence = 1
    _ = contents.apply([snapshot(chat()), snapshot(second)], token: "1", user: me)
    let changes = contents.apply(
      [frame(.reset(.init())), snapshot(second), frame(.caughtUp(.init()))], token: "9", user: me)
    #expect(contents.chats.entries.keys.sorted() == ["chats/b"])
    #expect(changes.first == .reset)
    #expect(changes.last == .caughtUp)
  }

  @Test func anUnknownEventIsPassedOver() {
    var contents = ChatContents()
    #expect(contents.apply([Chat.SubscribeResponse()], token: "1", user: me).isEmpty)
    #expect(contents.token == "1")
  }

  @Test func delaysHaveFullJitter() {
    var delay = ReconnectDelay()
    #expect((0..<8).map { _ in delay.next(random: 1) } == [0.5, 1, 2, 4, 8, 16, 30, 30])
    #expect(delay.next(random: 0) == 0)
    delay.reset()
    #expect(delay.next(random: 1) == 0.5)
    for _ in 0..<5000 { #expect((0...30).contains(delay.next())) }
  }

  @Test func messageIDsAreVersion7() {
    // RFC 9562, appendix A.6: 0x017F22E279B0 is 2022-02-22T19:22:22Z.
    let id = MessageID.make(milliseconds: 0x017F_22E2_79B0)
    #expect(id.hasPrefix("017f22e2-79b0-7"))
    #expect(id.count == 36)
    #expect(["8", "9", "a", "b"].contains(Array(id)[19]))
    #expect(Set((0..<1000).map { _ in MessageID.make() }).count == 1000)
  }

  @Test func aSlowReaderIsToldThatItMissedSomething() async {
    let broadcast = Broadcast<Int>(missed: -1, limit: 3)
    let stream = broadcast.subscribe()
    for value in 1...10 { broadcast.send(value) }
    var reader = stream.makeAsyncIterator()
    var seen: [Int] = []
    for _ in 0..<4 { seen.append(await reader.next() ?? 0) }
    broadcast.send(11)
    seen.append(await reader.next() ?? 0)
    seen.append(await reader.next() ?? 0)
    #expect(seen == [1, 2, 3, 4, -1, 11])
  }

  /// A reader's end and a value for it do not wait for each other's locks.
  @Test func readersComeAndGoWhileValuesCome() async {
    let broadcast = Broadcast<Int>(missed: -1)
    let sender = Task.detached {
      while !Task.isCancelled {
        broadcast.send(1)
        await Task.yield()
      }
    }
    for _ in 0..<3000 {
      let (values, pulses) = (broadcast.subscribe(), broadcast.pulses())
      let readers = [
        Task.detached { for await _ in values {} }, Task.detached { for await _ in pulses {} },
      ]
      await Task.yield()
      for reader in readers { reader.cancel() }
      for reader in readers { await reader.value }
    }
    sender.cancel()
    await sender.value
    // Nothing of those who went stays.
    broadcast.send(2)
    #expect(broadcast.readerCount == 0)
  }
}
