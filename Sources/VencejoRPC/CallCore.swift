import Synchronization
import VencejoHTTP2

/// What both ends of a call share: messages that came and wait for their reader, messages
/// that go and wait for the window, and the flow control between them.
///
/// `@unchecked Sendable`: the members marked *loop* are touched by the loop's thread only;
/// everything that readers and writers on other threads need lies behind the two mutexes.
class CallCore: @unchecked Sendable {
  /// A writer waits above this many bytes not yet taken by the connection.
  static let highWaterMark = 64 * 1024
  /// Bytes given back to the window from another thread are gathered up to this many:
  /// each return costs a hop to the loop.
  private static let creditBatch = 32 * 1024

  let loop: EventLoop
  /// Loop. Nil before a client's stream is open and after the stream closed.
  final var stream: HTTP2Stream?
  /// Loop.
  final var deframer: Deframer
  /// Loop. Nil when nobody observes.
  final var tally: CallTally?

  /// What readers and writers on other threads need. Nil for one message each way, which
  /// neither waits for the other; set before anybody else knows of the call.
  private(set) var buffers: CallBuffers?

  init(loop: EventLoop, receiveLimit: Int) {
    self.loop = loop
    deframer = Deframer(limit: receiveLimit)
  }

  /// Loop. Sends a sealed frame of a stream of messages.
  func transmit(_ frame: [UInt8], on stream: HTTP2Stream) { put(frame, on: stream) }

  /// Loop. Ends our side.
  func transmitEnd(on stream: HTTP2Stream) { stream.finish() }

  /// Loop. Hands a sealed frame to the stream.
  final func put(_ frame: [UInt8], on stream: HTTP2Stream) {
    stream.send(data: frame)
    if let tally { tally.sent(frame.count) }
  }

  /// Makes ready for streams of messages.
  final func openBuffers() { buffers = CallBuffers() }

  /// Loop. The stream when it can take messages now, after whatever must go before them.
  func streamForMessages() -> HTTP2Stream? { stream }
}

final class CallBuffers: Sendable {
  let inbound = Mutex(CallCore.Inbound())
  let outbound = Mutex(CallCore.Outbound())
}

/// Why a reader waits no longer.
@usableFromInline
enum ReaderWake {
  /// There is a message, or the end.
  case ready
  /// Its task was cancelled.
  case cancelled
  /// Another one waits already.
  case taken
}

// MARK: - Messages that came

extension CallCore {
  /// A message as it came, decompressed.
  struct Received {
    var bytes: [UInt8] = []
    var wasCompressed = false
  }

  typealias Wake = ReaderWake

  struct Inbound {
    var messages: [Received] = []
    /// The bytes that a reader which waited is woken for.
    var handed: [UInt8]?
    /// Bytes of queued messages with their prefixes.
    var held = 0
    /// Bytes received and not yet returned to the window.
    var uncredited = 0
    /// Set once nothing more will come.
    var end: End?
    var waiter: UnsafeContinuation<Wake, Never>?
    var handedWasCompressed = false
    var head: Int32 = 0
    /// Bytes of a message that has only begun.
    var partial: UInt32 = 0

    /// An error takes up room only where there is one.
    indirect enum End {
      case regular
      case error(RPCError)
    }

    var isEmpty: Bool { Int(head) == messages.count }

    /// While something is queued, its reader is behind and the window stays shut by that
    /// much; a message larger than the window can still arrive once the queue is empty.
    var creditable: Int { isEmpty ? uncredited : max(0, uncredited - held - Int(partial)) }

    mutating func takeCredit(atLeast least: Int) -> Int {
      let credit = creditable
      guard credit > 0, credit >= least || isEmpty else { return 0 }
      uncredited -= credit
      return credit
    }

    mutating func pop() -> Received? {
      let index = Int(head)
      guard index < messages.count else { return nil }
      let message = messages[index]
      messages[index] = Received()
      head += 1
      if isEmpty || head >= 64 {
        messages.removeFirst(index + 1)
        head = 0
      }
      held -= message.bytes.count + Deframer.prefixLength
      return message
    }

    mutating func drop() {
      messages.removeAll()
      handed = nil
      head = 0
      held = 0
    }
  }

  /// Loop. Hands over a whole message.
  final func deliver(_ message: [UInt8]) {
    guard let buffers else { return }
    let received = Received(bytes: message, wasCompressed: deframer.isCompressed)
    let waiter = buffers.inbound.withLock { state -> UnsafeContinuation<Wake, Never>? in
      guard state.end == nil else { return nil }
      if let waiter = state.waiter {
        state.waiter = nil
        state.handed = received.bytes
        state.handedWasCompressed = received.wasCompressed
        return waiter
      }
      state.messages.append(received)
      state.held += message.count + Deframer.prefixLength
      return nil
    }
    waiter?.resume(returning: .ready)
  }

  /// Loop. Accounts for the bytes of a DATA frame after its messages were delivered, and
  /// opens the window as far as the reader has come.
  final func received(_ count: Int) {
    guard let buffers else { return }
    let partial = UInt32(clamping: deframer.bufferedBytes)
    let credit = buffers.inbound.withLock { state in
      state.partial = partial
      state.uncredited += count
      if state.end != nil { state.drop() }
      return state.takeCredit(atLeast: 0)
    }
    if credit > 0 { stream?.consume(credit) }
  }

  /// Loop. Ends the messages: after those that came, or at once with `dropping`.
  final func endMessages(_ error: RPCError?, dropping: Bool) {
    guard let buffers else { return }
    let waiter = buffers.inbound.withLock { state -> UnsafeContinuation<Wake, Never>? in
      guard state.end == nil else { return nil }
      state.end = error.map { .error($0) } ?? .regular
      if dropping { state.drop() }
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: .ready)
  }

  /// Any thread. The next message, or nil after the last.
  ///
  /// Single consumer: a second one that waits at the same time is refused.
  final func nextMessage() async throws(RPCError) -> Received? {
    try takeMessage(after: await untilMessage())
  }

  /// Any thread. Waits for a message or the end; `takeMessage` says which.
  ///
  /// It returns next to nothing, and does all else in functions that do not wait: the frames of
  /// a reader that waits are most of an idle stream.
  final func untilMessage() async -> Wake {
    if hasMessage { return .ready }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { enter($0) }
    } onCancel: {
      leave()
    }
  }

  @inline(never)
  final var hasMessage: Bool {
    guard let buffers else { return true }
    return buffers.inbound.withLock { $0.handed != nil || !$0.isEmpty || $0.end != nil }
  }

  /// A reader waits from here on, unless it has no need to.
  @inline(never)
  final func enter(_ waiter: UnsafeContinuation<Wake, Never>) {
    guard let buffers else { return waiter.resume(returning: .ready) }
    let wake = buffers.inbound.withLock { state -> Wake? in
      if state.handed != nil || !state.isEmpty || state.end != nil { return .ready }
      if state.waiter != nil { return .taken }
      if Task.isCancelled { return .cancelled }
      state.waiter = waiter
      return nil
    }
    if let wake { waiter.resume(returning: wake) }
  }

  @inline(never)
  private final func leave() {
    guard let buffers else { return }
    let waiter = buffers.inbound.withLock { state in
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: .cancelled)
  }

  /// Any thread. What there is for the reader; nil after the last message.
  @inline(never)
  final func takeMessage(after wake: Wake) throws(RPCError) -> Received? {
    guard let buffers else { throw Self.noStream }
    switch wake {
    case .ready: break
    case .cancelled: throw RPCError(.cancelled, "the reading task was cancelled")
    case .taken: throw Self.taken
    }
    let (message, end, credit) = buffers.inbound.withLock {
      state -> (Received?, Inbound.End?, Int) in
      if let bytes = state.handed {
        state.handed = nil
        return (Received(bytes: bytes, wasCompressed: state.handedWasCompressed), nil, 0)
      }
      if let message = state.pop() {
        return (message, nil, state.takeCredit(atLeast: Self.creditBatch))
      }
      return (nil, state.end, 0)
    }
    giveBack(credit)
    if let message { return message }
    switch end {
    case .error(let error): throw error
    case .regular: return nil
    case nil: throw Self.taken
    }
  }

  private static var taken: RPCError { RPCError(.internalError, "two tasks read the same stream") }

  private final func giveBack(_ credit: Int) {
    guard credit > 0 else { return }
    if loop.isCurrent {
      stream?.consume(credit)
    } else {
      loop.execute { self.stream?.consume(credit) }
    }
  }
}
