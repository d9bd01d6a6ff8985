import Synchronization
import VencejoAPI
import VencejoCrypto
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// Hands what was committed to the streams that listen: one enqueue per loop and commit, every
/// frame encoded once.
///
/// The log is the truth, this is only faster: whenever a stream cannot be served from here, it
/// reads the log.
final class ChatHub: Sendable {
  private struct State {
    var head: Int64 = 0
    var shelves: [ObjectIdentifier: ChatShelf] = [:]
  }

  private let store: Store
  private let state = Mutex(State())
  private let encoded = Atomic(0)

  init(_ store: Store) { self.store = store }

  /// Frames of commits encoded so far: at most two for each, however many listen.
  var encodedFrames: Int { encoded.load(ordering: .relaxed) }

  /// The shelf of a loop.
  func shelf(for loop: EventLoop) -> ChatShelf {
    state.withLock { state in
      if let shelf = state.shelves[ObjectIdentifier(loop)] { return shelf }
      let shelf = ChatShelf(loop: loop, position: state.head)
      state.shelves[ObjectIdentifier(loop)] = shelf
      return shelf
    }
  }

  /// On the writer's thread, in the order of commits.
  func publish(_ batch: CommittedBatch) {
    let shelves = state.withLock { state in
      state.head = batch.head
      return Array(state.shelves.values)
    }
    guard !shelves.isEmpty else { return }
    let tokens = store.tokens
    let live = LiveBatch(
      base: batch.base, head: batch.head,
      transactions: shelves.contains { $0.hasStreams }
        ? batch.transactions.compactMap { LiveTransaction($0, tokens) } : [])
    let frames = live.transactions.reduce(0) {
      $0 + ($1.frame == nil ? 0 : 1) + ($1.ownerFrame == nil ? 0 : 1)
    }
    encoded.add(frames, ordering: .relaxed)
    for shelf in shelves { shelf.loop.execute { shelf.deliver(live) } }
  }
}

extension ChatHub {
  /// Tells what is not kept to those who listen to a chat and care.
  func publish(_ event: Chat.SubscribeResponse.Event, chat: Int64, by author: Int64) {
    publish(event) { $0.deliver($1, chat: chat, by: author) }
  }

  /// Tells what is not kept to users who care.
  func publish(_ event: Chat.SubscribeResponse.Event, to users: [Int64], by author: Int64) {
    publish(event) { $0.deliver($1, to: users, by: author) }
  }

  private func publish(
    _ event: Chat.SubscribeResponse.Event,
    _ deliver: @escaping @Sendable (ChatShelf, EncodedMessage) -> Void
  ) {
    let shelves = state.withLock { Array($0.shelves.values) }.filter(\.hasStreams)
    guard !shelves.isEmpty else { return }
    var response = Chat.SubscribeResponse()
    response.event = event
    let frame = EncodedMessage(response)
    for shelf in shelves { shelf.loop.execute { deliver(shelf, frame) } }
  }
}

/// A commit, ready for the streams.
struct LiveBatch: Sendable {
  let base: Int64
  let head: Int64
  let transactions: [LiveTransaction]
}

/// A transaction, ready for the streams.
struct LiveTransaction: Sendable {
  /// Position after it.
  let position: Int64
  /// The chat whose listeners get a frame.
  var chat: Int64?
  var frame: EncodedMessage?
  /// The sender's devices get this one, which says that the message is theirs.
  var owner: Int64?
  var ownerFrame: EncodedMessage?
  /// Those who block them get none.
  var author: Int64?
  /// Those who hide their receipts read the log, where it is taken out.
  var reader: Int64?
  /// The message it changes: a reader it may be hidden from reads the log, which knows.
  var changed: Int64?
  /// Whose receipt it is, and how far they have read; 0 where only delivery is told.
  var receipt: (user: UUID, read: Int64)?
  /// What a device has received with the frame.
  var message: (chat: UUID, sequence: Int64)?
  /// Users for whom it holds what differs between readers: their streams read the log.
  let behind: [Int64]
  /// Chats of which it holds more than one event, or one that differs between readers: their
  /// streams read the log too, so that the frames of one transaction stay together.
  var chatsBehind: [Int64]

  /// Nil when no stream of this service shows anything of it.
  init?(_ events: [LoggedEvent], _ tokens: TokenAuthority) {
    var behind: [Int64] = []
    var chatsBehind: [Int64] = []
    var shared: [(LoggedEvent, SharedEvent)] = []
    for event in events {
      if let payload = event.payload as? SharedEvent {
        shared.append((event, payload))
      } else if let members = event.payload as? ChatMembers {
        behind += members.users
      } else if let chat = event.chat {
        chatsBehind.append(chat)
      } else if let user = event.user, event.kind != .sessionsRevoked {
        behind.append(user)
      }
    }
    guard let last = events.last, !shared.isEmpty || !behind.isEmpty || !chatsBehind.isEmpty
    else { return nil }
    position = last.position
    self.behind = behind
    self.chatsBehind = chatsBehind
    guard chatsBehind.isEmpty, shared.count == 1, let (event, payload) = shared.first else {
      self.chatsBehind += shared.compactMap(\.0.chat)
      return
    }
    let shift: Int64 = Mutation.tokenBehind.isOn ? -1 : Mutation.tokenAhead.isOn ? 1 : 0
    let token = tokens.resumeToken(
      .chat, position: last.position + shift, now: last.commitTime)
    func frame(for reader: Int64?) -> EncodedMessage {
      EncodedMessage(
        Chat.SubscribeResponse(
          payload.event, commitTime: event.commitTime, token: token, historical: false,
          for: reader))
    }
    chat = event.chat
    self.frame = frame(for: nil)
    author = payload.author
    reader = payload.reader
    if let owner = payload.owner {
      self.owner = owner
      ownerFrame = frame(for: owner)
    }
    switch payload.event {
    case .messageCreated(let message): self.message = (message.chat, message.sequence)
    case .messageUpdated(let message, _): changed = message.sequence
    case .reactionChanged(let change): changed = change.sequence
    case .receiptMoved(let marker): receipt = (marker.user, marker.read)
    default: break
    }
  }
}
