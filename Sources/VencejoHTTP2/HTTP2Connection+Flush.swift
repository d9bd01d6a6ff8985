import CNGHTTP2
import Synchronization

/// The way out: nghttp2 fills the loop's buffer, one write empties it, and only what
/// the kernel does not take is kept with the connection.
extension HTTP2Connection {
  @inline(__always)
  func markDirty() {
    if isDirty { return }
    isDirty = true
    loop.markDirty(self)
  }

  /// nghttp2's send callback.
  @inline(__always)
  func append(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Int {
    guard outCount < EventLoop.writeSize else { return Int(NGHTTP2_ERR_WOULDBLOCK.rawValue) }
    let taken = min(count, EventLoop.writeSize &+ EventLoop.writeSlack &- outCount)
    (out + outCount).update(from: bytes, count: taken)
    outCount &+= taken
    return taken
  }

  /// nghttp2's send-data callback: the frame's head of nine bytes, then the stream's.
  @inline(__always)
  func append(
    _ head: UnsafePointer<UInt8>, _ length: Int, of stream: HTTP2Stream
  ) -> Int32 {
    guard outCount < EventLoop.writeSize, length &+ 9 <= EventLoop.writeSlack else {
      return NGHTTP2_ERR_WOULDBLOCK.rawValue
    }
    let start = out + outCount
    start.update(from: head, count: 9)
    outCount &+= 9 &+ length
    queuedTotal &-= length
    stream.lastProgress = loop.now
    stream.write(length, to: start + 9)
    return 0
  }

  /// Sends what there is to send; the loop calls it once in a tick.
  func flush() {
    guard !isClosed, let session else { return }
    if awaitsPreface && !isGoingAway && !isTerminating {
      isDirty = false
      return
    }
    // `isDirty` stays set meanwhile: what callbacks add, the rounds below send.
    if backlog != nil && !writeBacklog() {
      isDirty = false
      if isTerminating { tearDownOnceSent() }
      return
    }
    if let tls, !tls.isEstablished {
      flushHandshake()
      return
    }
    var rounds = 4
    repeat {
      if credit > 0 {
        _ = nghttp2_session_consume_connection(session, credit)
        credit = 0
      }
      outCount = 0
      depth &+= 1
      let result = nghttp2_session_send(session)
      depth &-= 1
      if settlePendingClose() { return }
      if result != 0 {
        let text = String(cString: nghttp2_strerror(result))
        tearDown(closeReason ?? HTTP2Error(.protocolViolation, "nghttp2: \(text)"))
        return
      }
      if (outCount > 0 || tls != nil) && !writeOut() { return }
      if !drained.isEmpty {
        tellDrained()
        if isClosed { return }
      }
      rounds &-= 1
      if rounds == 0 {
        loop.markDirty(self)
        return
      }
      if queuedTotal > limits.maxQueuedBytes || isCongestedHere { noteCongestion() }
    } while backlog == nil && (credit > 0 || nghttp2_session_want_write(session) != 0)
    isDirty = false
    if stallTimer == nil && (queuedTotal > 0 || backlog != nil) { watchStalls() }
    if isShuttingDown || isTerminating || nghttp2_session_want_read(session) == 0 {
      finishIfDone()
    }
  }

  private var isCongestedHere: Bool { congestion.load(ordering: .relaxed) || !congested.isEmpty }

  /// Half of the limit must be free before the next may queue: a few at a time.
  private func noteCongestion() {
    if queuedTotal > limits.maxQueuedBytes {
      congestion.store(true, ordering: .relaxed)
    } else if queuedTotal <= limits.maxQueuedBytes / 2 && congestionTimer == nil {
      // Those who wait go first: until they have, newcomers wait behind them.
      let first = congested.prefix(2)
      congested.removeFirst(first.count)
      if congested.isEmpty { congestion.store(false, ordering: .relaxed) }
      for waiter in first { waiter() }
      guard !congested.isEmpty else { return }
      // The next ones in a while: those who were let go queue their bytes first.
      congestionTimer = loop.schedule(afterNanoseconds: 1_000_000) { [self] in
        congestionTimer = nil
        if !isClosed { markDirty() }
      }
    }
  }

  /// Many may queue in one tick.
  func noteLargeQueue() {
    if queuedTotal > limits.maxQueuedBytes { congestion.store(true, ordering: .relaxed) }
  }

  /// Runs `body` once there is room, or the connection is closed; at once when it is not
  /// congested. On the loop.
  public func whenUncongested(_ body: @escaping () -> Void) {
    loop.assertCurrent()
    if isCongested && !isClosed { congested.append(body) } else { body() }
  }

  private func tellDrained() {
    for i in drained.indices {
      let stream = drained[i]
      if !stream.isReset { stream.slot.drain(stream) }
    }
    drained.removeAll(keepingCapacity: true)
  }

  /// Whether nothing remains to be said or heard, and if so closes.
  private func finishIfDone() {
    guard let session else { return }
    if !isServer && isShuttingDown && !isTerminating && openStreamCount == 0 {
      terminate(closeReason)
      return
    }
    guard nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 else {
      return
    }
    if backlog == nil || isTerminating { tearDownOnceSent() }
  }

  /// Hands `out` to the kernel; false when the connection is gone.
  func writeOut() -> Bool {
    var bytes = out
    var count = outCount
    if let tls {
      guard let sealed = seal(tls) else {
        tearDown(closeReason ?? TLSFailure.failed("cannot write"))
        return false
      }
      (bytes, count) = sealed
      if count == 0 { return true }
    }
    let sent = send(bytes, count)
    if sent == count {
      lastWrite = loop.now
      return true
    }
    guard sent >= 0 else {
      tearDown(Syscalls.failure("send", .connectionClosed))
      return false
    }
    if sent > 0 || backlog == nil { lastWrite = loop.now }
    let left = count &- sent
    let kept = UnsafeMutablePointer<UInt8>.allocate(capacity: left)
    kept.update(from: bytes + sent, count: left)
    backlog = kept
    backlogOffset = 0
    backlogEnd = left
    socket?.wantWrite(true)
    return true
  }

  /// True when all of the backlog is gone.
  private func writeBacklog() -> Bool {
    guard let backlog else { return true }
    let left = backlogEnd &- backlogOffset
    let sent = send(backlog + backlogOffset, left)
    guard sent >= 0 else {
      tearDown(Syscalls.failure("send", .connectionClosed))
      return false
    }
    if sent > 0 { lastWrite = loop.now }
    backlogOffset &+= sent
    guard sent == left else { return false }
    backlog.deallocate()
    self.backlog = nil
    socket?.wantWrite(false)
    return true
  }

  /// Bytes taken, 0 when it must wait, -1 when the connection is gone.
  @inline(__always)
  private func send(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int {
    if let socket { return socket.write(bytes, count) }
    if let sink { return sink(UnsafeRawBufferPointer(start: bytes, count: count)) }
    return -1
  }
}
