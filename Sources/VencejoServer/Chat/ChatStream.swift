import VencejoAPI
import VencejoCrypto
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// A Subscribe call of ChatService.
///
/// `@unchecked Sendable`: all that is its own and not constant is touched on the loop only.
final class ChatStream: LiveStream, @unchecked Sendable {
  /// Internal key.
  let user: Int64
  let out: ResponseWriter<Chat.SubscribeResponse>
  private let shelf: ChatShelf
  private let store: Store
  private let marksDelivered: Bool
  private let wantsEphemeral: Bool
  private let interval: Duration
  private let age: UInt64

  // Loop.
  var isLive = false
  /// Everything up to here that concerns the stream has been sent.
  var position: Int64 = 0
  /// Those it listens to, each with the sequence from which on nothing is hidden from the user.
  var chats: [Int64: Int64] = [:]
  var blocked: Set<Int64> = []
  var everBlocked: Set<Int64> = []
  var hidesReceipts = false
  /// By the loop's clock, in nanoseconds.
  var lastSent: UInt64 = 0
  private var timer: LoopTimer?
  private var ageLimit: UInt64 = .max
  /// Received by the device and not yet marked.
  private var delivered: [UUID: Int64] = [:]
  private var markTimer: LoopTimer?
  /// Receipts that wait for a tenth of a second or for the next frame, oldest first: of those of
  /// one member only the furthest is sent.
  private var receipts: [WaitingReceipt] = []
  private var receiptTimer: LoopTimer?
  /// Since when the handler has waited for room, by the loop's clock.
  var sendingSince: UInt64?
  /// Ends the handler while it waits for room.
  var cancelWork: (() -> Void)?
  private let patience: UInt64

  private struct WaitingReceipt {
    let chat: Int64
    let user: UUID
    let read: Int64
    let frame: EncodedMessage
    /// Position before it: where a replay begins that is to tell it.
    let before: Int64
  }

  init(
    _ principal: Principal, _ out: ResponseWriter<Chat.SubscribeResponse>, _ shelf: ChatShelf,
    _ store: Store, marksDelivered: Bool, wantsEphemeral: Bool, interval: Duration,
    age: Duration, patience: Duration
  ) {
    user = principal.user
    self.marksDelivered = marksDelivered
    self.wantsEphemeral = wantsEphemeral
    self.out = out
    self.shelf = shelf
    self.store = store
    self.interval = interval
    self.patience = patience.nanoseconds
    // A tenth either way, so that clients that came together do not go together.
    self.age = (age * Double.random(in: 0.9...1.1)).nanoseconds
    super.init(loop: out.loop, session: principal.session)
  }

  /// Loop.
  func startHeartbeat() {
    lastSent = loop.now
    ageLimit = loop.now &+ age
    schedule(after: interval.nanoseconds)
  }

  /// Loop. The device has a message now; told to the others in one go with what comes within a
  /// tenth of a second.
  func received(_ chat: UUID, _ sequence: Int64) {
    guard marksDelivered else { return }
    delivered[chat] = max(delivered[chat] ?? 0, sequence)
    guard markTimer == nil else { return }
    markTimer = loop.schedule(after: .milliseconds(100)) { self.mark() }
  }

  private func mark() {
    markTimer = nil
    guard !delivered.isEmpty else { return }
    let markers = delivered
    delivered = [:]
    Task { [store, user] in
      // A marker that is lost moves with the next message.
      _ = try? await store.write { try $0.markDelivered(live: markers, by: user) }
    }
  }

  /// Loop. Lets a receipt wait; what it supersedes is not sent any more.
  func wait(
    _ receipt: (user: UUID, read: Int64), _ frame: EncodedMessage, chat: Int64, before: Int64
  ) {
    // A marker never goes back; but one of delivery alone does not tell what was read.
    receipts.removeAll {
      $0.chat == chat && $0.user == receipt.user && ($0.read == 0 || receipt.read >= $0.read)
    }
    receipts.append(
      WaitingReceipt(
        chat: chat, user: receipt.user, read: receipt.read, frame: frame, before: before))
    guard receiptTimer == nil else { return }
    receiptTimer = loop.schedule(after: .milliseconds(100)) { [weak self] in
      guard let self else { return }
      self.receiptTimer = nil
      if self.isLive, !self.flushReceipts() { self.shelf.fallBehind(self) }
    }
  }

  /// Loop. Sends the receipts that wait. False when there is no room: then ``position`` is before
  /// the first that was not sent, and the log tells them.
  func flushReceipts() -> Bool {
    while let first = receipts.first {
      guard out.tryWrite(first.frame) else {
        position = first.before
        receipts = []
        return false
      }
      lastSent = loop.now
      receipts.removeFirst()
    }
    return true
  }

  /// Loop. Sends a frame without a place in the log, when there is room and it is wanted.
  func offer(_ frame: EncodedMessage, by author: Int64) {
    guard wantsEphemeral, author != user, !blocked.contains(author) else { return }
    if out.tryWrite(frame) { lastSent = loop.now }
  }

  /// Loop. Nothing is sent after this.
  func stop() {
    timer?.cancel()
    timer = nil
    markTimer?.cancel()
    receiptTimer?.cancel()
    receiptTimer = nil
    receipts = []
    cancelWork = nil
    mark()
    shelf.remove(self)
  }

  private func schedule(after nanoseconds: UInt64) {
    // It holds the stream, until stop(): whatever was once held weakly is counted in a table beside
    // it ever after, which each delivery would pay for.
    timer = loop.schedule(after: .nanoseconds(Int64(clamping: nanoseconds))) { self.beat() }
  }

  private func beat() {
    guard loop.now < ageLimit else { return end(.aged) }
    if let since = sendingSince, loop.now &- since >= patience {
      end(.slow)
      cancelWork?()
      return
    }
    let silence = loop.now &- lastSent
    guard silence >= interval.nanoseconds else {
      return schedule(after: interval.nanoseconds - silence)
    }
    // One that walks the log gets frames from there; one that is behind has frames to read.
    if isLive, flushReceipts() {
      var frame = Chat.SubscribeResponse()
      let now = store.now
      frame.resumeToken = store.tokens.resumeToken(
        .chat, position: max(position, shelf.position), now: now)
      frame.event = .heartbeat(.init(serverTime: Google.Timestamp(microseconds: now)))
      _ = out.tryWrite(EncodedMessage(frame))
    }
    lastSent = loop.now
    schedule(after: interval.nanoseconds)
  }
}

extension Duration {
  /// Whole nanoseconds; negative ones count as none.
  var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? .max / 4 : product &+ UInt64(attoseconds / 1_000_000_000)
  }
}
