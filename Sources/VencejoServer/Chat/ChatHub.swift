import Synchronization
import VencejoAPI
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

  init(_ store: Store) { self.store = store }

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
    for shelf in shelves { shelf.loop.execute { shelf.deliver(live) } }
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
  let chat: Int64?
  let frame: EncodedMessage?
  /// The sender's devices get this one, which says that the message is theirs.
  let sender: Int64?
  let senderFrame: EncodedMessage?
  /// Users for whom it holds what differs between readers: their streams read the log.
  let behind: [Int64]
  /// Chats of which it holds more than one event: their streams read the log too, so that the
  /// frames of one transaction stay together.
  let chatsBehind: [Int64]

  /// Nil when no stream of this service shows anything of it.
  init?(_ events: [LoggedEvent], _ tokens: TokenAuthority) {
    var behind: [Int64] = []
    var shared: [LoggedEvent] = []
    for event in events {
      switch event.kind {
      case .messageCreated, .receiptMoved: shared.append(event)
      case .chatUpserted: behind += (event.payload as? ChatMembers)?.users ?? []
      case .unreadChanged: if let user = event.user { behind.append(user) }
      default: break
      }
    }
    guard let last = events.last, !shared.isEmpty || !behind.isEmpty else { return nil }
    position = last.position
    self.behind = behind
    guard shared.count == 1, let event = shared.first,
      let frames = Self.frames(
        event,
        token: tokens.resumeToken(.chat, position: last.position, now: last.commitTime))
    else {
      chat = nil
      frame = nil
      sender = nil
      senderFrame = nil
      chatsBehind = shared.compactMap(\.chat)
      return
    }
    chat = event.chat
    frame = frames.shared
    sender = frames.sender
    senderFrame = frames.own
    chatsBehind = []
  }

  private static func frames(_ event: LoggedEvent, token: String) -> (
    shared: EncodedMessage, sender: Int64?, own: EncodedMessage?
  )? {
    var response = Chat.SubscribeResponse()
    response.resumeToken = token
    response.commitTime = Google.Timestamp(microseconds: event.commitTime)
    switch event.payload {
    case let message as StoredMessage:
      response.event = .messageCreated(.init(message: Chat.Message(message, for: nil)))
      let shared = EncodedMessage(response)
      guard let sender = message.senderKey else { return (shared, nil, nil) }
      response.event = .messageCreated(.init(message: Chat.Message(message, for: sender)))
      return (shared, sender, EncodedMessage(response))
    case let marker as ReadMarker:
      response.event = .receiptMoved(Chat.ReceiptMovedEvent(marker))
      return (EncodedMessage(response), nil, nil)
    default:
      return nil
    }
  }
}
