import Synchronization
import VencejoHTTP2
import VencejoRPC
import VencejoStore

/// The streams of one loop that are live: who listens to which chat.
///
/// `@unchecked Sendable`: confined to the loop's thread, but for `streamCount`, which is atomic,
/// and `loop`, which does not change.
final class ChatShelf: @unchecked Sendable {
  let loop: EventLoop
  private let streamCount = Atomic(0)
  /// Everything up to here has been handed out on this loop.
  private(set) var position: Int64
  private var byChat: [Int64: Listeners] = [:]
  private var byUser: [Int64: [ObjectIdentifier: ChatStream]] = [:]

  /// Of so many listeners a loop has a copy of the frame.
  private static let many = 16

  init(loop: EventLoop, position: Int64) {
    self.loop = loop
    self.position = position
  }

  /// Any thread. Whether frames need be encoded at all. A stream counts from before it reads
  /// the log for the last time: what commits later is encoded.
  var hasStreams: Bool { streamCount.load(ordering: .acquiring) > 0 }
  func streamBegins() { streamCount.add(1, ordering: .acquiringAndReleasing) }
  func streamEnds() { streamCount.subtract(1, ordering: .acquiringAndReleasing) }

  /// Loop. Makes a stream live that has read the log up to `page.position`; false when this
  /// loop has handed out more meanwhile.
  func goLive(_ stream: ChatStream, _ page: LogPage) -> Bool {
    assert(loop.isCurrent)
    guard position <= page.position, !stream.isLive else { return false }
    stream.isLive = true
    stream.position = page.position
    stream.chats = page.chats
    stream.blocked = page.blocked
    stream.everBlocked = page.everBlocked
    stream.hidesReceipts = page.hidesReceipts
    let id = ObjectIdentifier(stream)
    byUser[stream.user, default: [:]][id] = stream
    for chat in page.chats.keys { byChat[chat, default: Listeners()].insert(stream) }
    return true
  }

  /// Loop. Takes a stream out, if it is live.
  func remove(_ stream: ChatStream) {
    assert(loop.isCurrent)
    guard stream.isLive else { return }
    stream.isLive = false
    let id = ObjectIdentifier(stream)
    byUser[stream.user]?[id] = nil
    if byUser[stream.user]?.isEmpty == true { byUser[stream.user] = nil }
    for chat in stream.chats.keys {
      if byChat[chat]?.remove(stream) == true { byChat[chat] = nil }
    }
    stream.chats = [:]
  }

  /// Loop.
  func deliver(_ batch: LiveBatch) {
    assert(loop.isCurrent)
    var before = batch.base
    for transaction in batch.transactions {
      deliver(transaction, before: before)
      before = transaction.position
    }
    position = batch.head
  }

  private func deliver(_ transaction: LiveTransaction, before: Int64) {
    for user in transaction.behind {
      for stream in byUser[user].map({ Array($0.values) }) ?? [] {
        fallBehind(stream, transaction, before)
      }
    }
    for chat in transaction.chatsBehind {
      for stream in byChat[chat]?.all ?? [] {
        fallBehind(stream, transaction, before)
      }
    }
    guard let chat = transaction.chat, var frame = transaction.frame,
      let listeners = byChat[chat]
    else { return }
    if listeners.count > Self.many { frame = frame.copied() }
    if let one = listeners.one { hand(transaction, frame, to: one, in: chat, before) }
    for stream in listeners.others.values { hand(transaction, frame, to: stream, in: chat, before) }
  }

  /// What a commit tells one listener of its chat.
  @inline(__always)
  private func hand(
    _ transaction: LiveTransaction, _ frame: EncodedMessage, to stream: ChatStream,
    in chat: Int64, _ before: Int64
  ) {
    guard transaction.position > stream.position else { return }
    if let changed = transaction.changed,
      changed < stream.chats[chat] ?? .max
        || transaction.author.map({ stream.everBlocked.contains($0) }) ?? false
    {
      fallBehind(stream, transaction, before)
      return
    }
    if let author = transaction.author, stream.blocked.contains(author) {
      stream.position = transaction.position
      return
    }
    if let reader = transaction.reader, stream.hidesReceipts, stream.user != reader {
      fallBehind(stream, transaction, before)
      return
    }
    if let receipt = transaction.receipt {
      stream.wait(receipt, frame, chat: chat, before: before)
      stream.position = transaction.position
      return
    }
    guard stream.flushReceipts() else {
      fallBehind(stream)
      return
    }
    let own = stream.user == transaction.owner ? transaction.ownerFrame : nil
    if Mutation.dropEvent.isOn, transaction.position % 7 == 0 {
      stream.position = transaction.position
      return
    }
    if Mutation.repeatEvent.isOn, transaction.position % 7 == 0 {
      _ = stream.out.tryWrite(own ?? frame)
    }
    if stream.out.tryWrite(own ?? frame) {
      stream.position = transaction.position
      stream.lastSent = loop.now
      if let message = transaction.message, stream.user != transaction.owner {
        stream.received(message.chat, message.sequence)
      }
    } else {
      fallBehind(stream, transaction, before)
    }
  }

  /// Loop. A frame without a place in the log: who has no room for it does without.
  func deliver(_ frame: EncodedMessage, chat: Int64, by author: Int64) {
    assert(loop.isCurrent)
    for stream in byChat[chat]?.all ?? [] {
      stream.offer(frame, by: author)
    }
  }

  /// Loop. As ``deliver(_:chat:by:)``, to users.
  func deliver(_ frame: EncodedMessage, to users: [Int64], by author: Int64) {
    assert(loop.isCurrent)
    for user in users {
      for stream in byUser[user].map({ Array($0.values) }) ?? [] {
        stream.offer(frame, by: author)
      }
    }
  }

  /// Loop. Lets a stream read the log from its position on.
  func fallBehind(_ stream: ChatStream) {
    remove(stream)
    stream.fallBehind()
  }

  private func fallBehind(_ stream: ChatStream, _ transaction: LiveTransaction, _ before: Int64) {
    guard transaction.position > stream.position else { return }
    guard stream.flushReceipts() else { return fallBehind(stream) }
    remove(stream)
    // Everything up to the transaction before this one was either sent or does not concern it.
    stream.position = max(stream.position, before)
    stream.fallBehind()
  }
}

/// Who listens to one chat on one loop. Most chats have one listener, who costs no memory of their
/// own here: some are in ten thousand chats.
private struct Listeners {
  private(set) var one: ChatStream?
  private(set) var others: [ObjectIdentifier: ChatStream] = [:]

  var count: Int { others.count + (one == nil ? 0 : 1) }

  /// As they are now: what is done with them may change who listens.
  var all: [ChatStream] {
    (one.map { [$0] } ?? []) + others.values
  }

  mutating func insert(_ stream: ChatStream) {
    if one == nil {
      one = stream
    } else {
      others[ObjectIdentifier(stream)] = stream
    }
  }

  /// Whether nobody is left.
  mutating func remove(_ stream: ChatStream) -> Bool {
    if one === stream {
      one = nil
    } else {
      others[ObjectIdentifier(stream)] = nil
    }
    return one == nil && others.isEmpty
  }
}
