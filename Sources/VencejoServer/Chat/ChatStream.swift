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
  var chats: Set<Int64> = []
  var blocked: Set<Int64> = []
  var everBlocked: Set<Int64> = []
  /// By chat, the sequence from which on nothing is hidden from the user.
  var clearFrom: [Int64: Int64] = [:]
  var hidesReceipts = false
  /// By the loop's clock, in nanoseconds.
  var lastSent: UInt64 = 0
  private var timer: LoopTimer?
  private var ageLimit: UInt64 = .max
  /// Received by the device and not yet marked.
  private var delivered: [UUID: Int64] = [:]
  private var markTimer: LoopTimer?

  init(
    _ principal: Principal, _ out: ResponseWriter<Chat.SubscribeResponse>, _ shelf: ChatShelf,
    _ store: Store, marksDelivered: Bool, wantsEphemeral: Bool, interval: Duration,
    age: Duration
  ) {
    user = principal.user
    self.marksDelivered = marksDelivered
    self.wantsEphemeral = wantsEphemeral
    self.out = out
    self.shelf = shelf
    self.store = store
    self.interval = interval
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
    let silence = loop.now &- lastSent
    guard silence >= interval.nanoseconds else {
      return schedule(after: interval.nanoseconds - silence)
    }
    // One that walks the log gets frames from there; one that is behind has frames to read.
    if isLive {
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
