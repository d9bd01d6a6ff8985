import CNGHTTP2

/// One request and its response. All of it belongs to the connection's loop; after
/// the handler's `closedWith` every call is harmless and does nothing.
///
/// `@unchecked Sendable`: only the loop's thread touches it, which debug builds
/// assert at every entrance.
public final class HTTP2Stream: @unchecked Sendable {
  // In few bytes: an idle stream is this and little else.

  /// The stream's number on its connection.
  public let id: Int32
  /// A header list that is being received.
  @exclusivity(unchecked) var headerListSize: Int32 = 0
  /// The connection it runs on.
  public let connection: HTTP2Connection
  /// Bytes taken by `send(data:)` and not yet framed.
  @exclusivity(unchecked) public internal(set) var queuedBytes = 0

  @exclusivity(unchecked) var slot = HandlerSlot()
  @exclusivity(unchecked) var previous: Unmanaged<HTTP2Stream>?
  @exclusivity(unchecked) var next: Unmanaged<HTTP2Stream>?

  // What waits to be sent: one array, and more behind it.
  @exclusivity(unchecked) var chunk: [UInt8]?
  @exclusivity(unchecked) var chunkOffset = 0
  @exclusivity(unchecked) var more: More?

  // The lists nghttp2 reads in place.
  @exclusivity(unchecked) var heldHeaders: HeaderStorage?
  @exclusivity(unchecked) var heldTrailers: HeaderStorage?

  /// When bytes last moved, for `stalledSendTimeout`.
  @exclusivity(unchecked) var lastProgress: UInt64 = 0
  /// Received and not given back to the window, which has as many at most.
  @exclusivity(unchecked) var unconsumed: Int32 = 0

  /// The header list being received passed the configured size; fields beyond were
  /// not delivered.
  @exclusivity(unchecked) public internal(set) var headerListOverflowed = false
  /// The peer has ended its side.
  @exclusivity(unchecked) public internal(set) var remoteEnded = false
  /// Nothing can be sent or received any more.
  @exclusivity(unchecked) public internal(set) var isClosed = false
  @exclusivity(unchecked) var responseStarted = false
  /// Our side ends once the queue is empty.
  @exclusivity(unchecked) var ending = false
  /// nghttp2 asked for data in vain and must be told of new ones.
  @exclusivity(unchecked) var deferred = false
  @exclusivity(unchecked) var aboveHighWater = false
  /// The frame being received is the peer's last: its window need not be refilled.
  @exclusivity(unchecked) var inboundEnding = false
  @exclusivity(unchecked) var isReset = false
  /// All of the response is with nghttp2 (server).
  @exclusivity(unchecked) var localEnded = false
  /// We end before the peer does: an RST_STREAM(NO_ERROR) must follow.
  @exclusivity(unchecked) var finishesEarly = false
  @exclusivity(unchecked) private var rare: UInt8 = 0

  /// The connection ended before a byte of the request had left: it was made nowhere.
  public internal(set) var isUnsent: Bool {
    get { rare & 1 != 0 }
    set { rare = newValue ? rare | 1 : rare & ~1 }
  }

  /// It has so much to send that others must not wait for all of it.
  private var sharesBandwidth: Bool {
    get { rare & 2 != 0 }
    set { rare = newValue ? rare | 2 : rare & ~2 }
  }

  /// nghttp2 has been told where the body comes from. A server's stream does so with the first
  /// bytes: what it keeps for that is a twelfth of a stream at rest.
  var hasBody: Bool {
    get { rare & 4 != 0 }
    set { rare = newValue ? rare | 4 : rare & ~4 }
  }

  init(id: Int32, connection: HTTP2Connection) {
    self.id = id
    self.connection = connection
  }

  /// Whether the stream still sends.
  private var isOpen: Bool { !isClosed && !isReset }

  /// Sends the response's headers, or informational ones (a `:status` in the 100s).
  /// A client's headers go with `HTTP2Connection.open`. A list too large to send resets
  /// the stream with INTERNAL_ERROR, here and as trailers.
  public func send(headers: HeaderList) {
    connection.loop.assertCurrent()
    guard isOpen, connection.isServer, !responseStarted else { return }
    let list = headers.storage
    if list.size > HeaderList.maxSize {
      reset(HTTP2Code.internalError)
    } else if list.isInformational {
      additions.informational.append(list)
      _ = nghttp2_submit_headers(
        connection.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, list.fields, list.count, nil
      )
    } else {
      responseStarted = true
      heldHeaders = list
      check(
        nghttp2_submit_headers(
          connection.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, list.fields, list.count,
          nil))
      if queuedBytes > 0 { resume() }
    }
    connection.markDirty()
  }

  /// Queues bytes of the body, without copying them.
  public func send(data: [UInt8]) {
    connection.loop.assertCurrent()
    guard isOpen, !ending, !data.isEmpty else { return }
    if queuedBytes == 0 {
      chunk = data
      chunkOffset = 0
      lastProgress = connection.loop.now
    } else {
      additions.append(data)
    }
    queuedBytes &+= data.count
    connection.queuedTotal &+= data.count
    if queuedBytes > connection.highWaterMark {
      aboveHighWater = true
      connection.noteLargeQueue()
      if !sharesBandwidth { shareBandwidth() }
    }
    resume()
  }

  /// Ends our side with trailers, after everything queued. Without headers before
  /// it, this is a response of one block.
  public func send(trailers: HeaderList) {
    connection.loop.assertCurrent()
    guard isOpen, !ending else { return }
    let list = trailers.storage
    if list.size > HeaderList.maxSize {
      reset(HTTP2Code.internalError)
      return
    }
    ending = true
    heldTrailers = list
    guard responseStarted || !connection.isServer else {
      responseStarted = true
      noteEnd()
      check(nghttp2_submit_response(connection.session, id, list.fields, list.count, nil))
      connection.markDirty()
      return
    }
    resume()
  }

  /// Ends our side after everything queued.
  public func finish() {
    connection.loop.assertCurrent()
    guard isOpen, !ending else { return }
    guard responseStarted || !connection.isServer else {
      reset(HTTP2Code.internalError)
      return
    }
    ending = true
    resume()
  }

  /// Gives the stream up; `closedWith` follows at the end of the tick.
  public func reset(_ code: UInt32) {
    connection.loop.assertCurrent()
    guard isOpen else { return }
    isReset = true
    dropQueue()
    _ = nghttp2_submit_rst_stream(
      connection.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code)
    connection.markDirty()
  }

  /// Lets the peer send `count` bytes more, on the stream and on its connection.
  public func consume(_ count: Int) {
    connection.loop.assertCurrent()
    let returned = min(count, Int(unconsumed))
    guard returned > 0, !isClosed else { return }
    unconsumed &-= Int32(truncatingIfNeeded: returned)
    if inboundEnding || isReset {
      connection.credit &+= returned
    } else {
      _ = nghttp2_session_consume(connection.session, id, returned)
    }
    connection.markDirty()
  }

  // MARK: Inside

  func dataProvider() -> nghttp2_data_provider {
    nghttp2_data_provider(
      source: nghttp2_data_source(ptr: Unmanaged.passUnretained(self).toOpaque()),
      read_callback: readCallback)
  }

  private func resume() {
    if !hasBody {
      guard responseStarted else { return }
      hasBody = true
      var provider = dataProvider()
      check(
        nghttp2_submit_data(
          connection.session, UInt8(NGHTTP2_FLAG_END_STREAM.rawValue), id, &provider))
    } else if deferred {
      deferred = false
      _ = nghttp2_session_resume_data(connection.session, id)
    }
    connection.markDirty()
  }

  /// nghttp2 refuses only for want of memory or on a stream it has closed.
  private func check(_ result: Int32) {
    if result < 0 { reset(HTTP2Code.internalError) }
  }

  /// Notes, as the last frame of our side goes to nghttp2, whether the peer still
  /// sends.
  func noteEnd() {
    localEnded = true
    guard connection.isServer, !remoteEnded, !finishesEarly else { return }
    finishesEarly = true
    connection.earlyFinishes &+= 1
  }

  /// Without it nghttp2 serves streams of one urgency one after the other, and a
  /// large body would hold up the others (RFC 9218, section 10).
  private func shareBandwidth() {
    sharesBandwidth = true
    guard connection.isServer else { return }
    var priority = nghttp2_extpri(urgency: UInt32(NGHTTP2_EXTPRI_DEFAULT_URGENCY), inc: 1)
    _ = nghttp2_session_change_extpri_stream_priority(connection.session, id, &priority, 1)
  }

  /// How many bytes nghttp2 may frame now, having room for `room`.
  func read(
    _ room: Int, _ flags: UnsafeMutablePointer<UInt32>
  ) -> Int {
    let count = min(queuedBytes, room)
    if count == 0 && !ending {
      deferred = true
      return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    }
    var set = NGHTTP2_DATA_FLAG_NO_COPY.rawValue
    if ending && count == queuedBytes {
      set |= NGHTTP2_DATA_FLAG_EOF.rawValue
      noteEnd()
      if let list = heldTrailers {
        set |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
        _ = nghttp2_submit_trailer(connection.session, id, list.fields, list.count)
      }
    }
    flags.pointee |= set
    return count
  }

  /// Moves `count` queued bytes to `out`.
  func write(_ count: Int, to out: UnsafeMutablePointer<UInt8>) {
    var out = out
    var left = count
    queuedBytes &-= count
    while left > 0, let bytes = chunk {
      let taken = bytes.withUnsafeBufferPointer { bytes -> Int in
        let n = min(bytes.count &- chunkOffset, left)
        guard let start = bytes.baseAddress, n > 0 else { return 0 }
        out.update(from: start + chunkOffset, count: n)
        return n
      }
      out += taken
      left &-= taken
      chunkOffset &+= taken
      if chunkOffset >= bytes.count {
        chunkOffset = 0
        chunk = more?.next()
      }
    }
    if aboveHighWater && queuedBytes <= connection.lowWaterMark {
      aboveHighWater = false
      connection.drained.append(self)
    }
  }

  func dropQueue() {
    connection.queuedTotal &-= queuedBytes
    queuedBytes = 0
    chunk = nil
    chunkOffset = 0
    more?.clear()
  }

  private var additions: More {
    if let more { return more }
    let made = More()
    more = made
    return made
  }

  /// What few streams need, kept out of the many.
  final class More {
    @exclusivity(unchecked) private var chunks: [[UInt8]] = []
    @exclusivity(unchecked) private var index = 0
    /// The last chunk was made here and takes more.
    @exclusivity(unchecked) private var gathers = false
    @exclusivity(unchecked) var informational: [HeaderStorage] = []

    private static let small = 1_024
    private static let gathered = 16_384

    /// Small arrays are copied together: counting their references costs more.
    func append(_ data: [UInt8]) {
      guard data.count <= Self.small else {
        chunks.append(data)
        gathers = false
        return
      }
      let last = chunks.count &- 1
      if gathers && chunks[last].count < Self.gathered {
        chunks[last].append(contentsOf: data)
      } else {
        var own: [UInt8] = []
        own.reserveCapacity(data.count &* 8)
        own.append(contentsOf: data)
        chunks.append(own)
        gathers = true
      }
    }

    func next() -> [UInt8]? {
      guard index < chunks.count else {
        clear()
        return nil
      }
      let chunk = chunks[index]
      chunks[index] = []
      index &+= 1
      if index == chunks.count { gathers = false }
      // An array that never runs empty must not grow for ever.
      if index == 64 {
        chunks.removeFirst(64)
        index = 0
      }
      return chunk
    }

    func clear() {
      chunks = []
      index = 0
      gathers = false
    }
  }
}

/// A stream's handler. Not copyable, so that calls borrow the handler where it lies:
/// a copy would cost a retain and a release for each header field.
///
/// Sound because nothing empties the slot while a call is on: a stream closes only in
/// nghttp2's close callback and in `tearDown`, and neither runs inside a handler.
struct HandlerSlot: ~Copyable {
  private var handler: (any StreamHandler)?

  borrowing func header(
    _ stream: HTTP2Stream, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) {
    handler?.stream(stream, header: name, value: value)
  }

  borrowing func headersEnd(_ stream: HTTP2Stream, _ ends: Bool) {
    handler?.stream(stream, headersEndWith: ends)
  }

  borrowing func data(_ stream: HTTP2Stream, _ bytes: UnsafeRawBufferPointer) {
    handler?.stream(stream, data: bytes)
  }

  borrowing func end(_ stream: HTTP2Stream) { handler?.streamDidEnd(stream) }

  borrowing func drain(_ stream: HTTP2Stream) { handler?.streamDidDrain(stream) }

  mutating func fill(_ handler: any StreamHandler) { self.handler = handler }

  mutating func empty() -> (any StreamHandler)? {
    let last = handler
    handler = nil
    return last
  }

  /// For tests.
  var object: AnyObject? { handler }
}

private let readCallback: nghttp2_data_source_read_callback = { _, _, _, room, flags, source, _ in
  guard let pointer = source?.pointee.ptr, let flags else {
    return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
  }
  return Unmanaged<HTTP2Stream>.fromOpaque(pointer)._withUnsafeGuaranteedRef {
    $0.read(room, flags)
  }
}
