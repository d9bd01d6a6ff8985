import CNGHTTP2
import Synchronization

/// One HTTP/2 connection (RFC 9113). All of it belongs to its loop.
///
/// The session underneath is pure state: `receive` takes bytes, `flush` gives bytes
/// to the socket, and nothing else does I/O.
///
/// `@unchecked Sendable`: only the loop's thread touches it, which debug builds
/// assert at every entrance.
public final class HTTP2Connection: @unchecked Sendable {
  /// The loop it belongs to.
  public let loop: EventLoop
  /// Whether we are the server of it.
  public let isServer: Bool
  /// The other end's address.
  public let peerAddress: SocketAddress
  /// Our end's address.
  public let localAddress: SocketAddress
  /// Whether it came over a Unix domain socket.
  public var isUnixSocket: Bool { localAddress.isUnix || peerAddress.isUnix }

  /// Told of what happens to the connection.
  @exclusivity(unchecked) public var handler: (any ConnectionHandler)?
  /// Gives each request's stream its handler, before its first header field. A
  /// server without it refuses every stream.
  @exclusivity(unchecked) public var acceptStream: ((HTTP2Stream) -> any StreamHandler)?
  /// Streams that have not closed.
  @exclusivity(unchecked) public internal(set) var openStreamCount = 0
  /// The connection is gone.
  @exclusivity(unchecked) public internal(set) var isClosed = false
  /// No stream will be opened any more: we are leaving, or the peer is.
  @exclusivity(unchecked) public internal(set) var isShuttingDown = false
  /// The peer's first SETTINGS have arrived.
  @exclusivity(unchecked) public internal(set) var isOpen = false
  /// Why it closes or has closed; nil when nothing is wrong.
  @exclusivity(unchecked) public internal(set) var closeReason: HTTP2Error?

  /// Who is at the other end of a Unix socket; nil on others.
  @exclusivity(unchecked) public internal(set) var peerCredentials: PeerCredentials?
  /// Bytes of bodies received.
  @exclusivity(unchecked) public internal(set) var receivedBytes = 0
  /// Whether more than `ConnectionConfiguration.maxQueuedBytes` are queued. Readable from any
  /// thread: producers should wait.
  public var isCongested: Bool { congestion.load(ordering: .relaxed) }
  let congestion = Atomic<Bool>(false)
  /// Whatever the layer above keeps with it.
  @exclusivity(unchecked) public var companion: AnyObject?
  /// PINGs that went out to see whether the peer is there.
  @exclusivity(unchecked) public internal(set) var keepalivesSent = 0

  let limits: ConnectionLimits
  // Of `limits`, what the hot paths read.
  let maxHeaderListSize: Int
  let highWaterMark: Int
  let lowWaterMark: Int
  @exclusivity(unchecked) var session: OpaquePointer?
  @exclusivity(unchecked) var socket: ConnectionSocket?
  /// Set before any byte moves, and never again.
  @exclusivity(unchecked) var tls: TLSSession?
  /// Takes the bytes where there is no socket (tests): returns how many it took.
  @exclusivity(unchecked) var sink: ((UnsafeRawBufferPointer) -> Int)?
  @exclusivity(unchecked) var streams: Unmanaged<HTTP2Stream>?
  /// The stream whose header block is being decoded.
  @exclusivity(unchecked) var decoding: Unmanaged<HTTP2Stream>?
  @exclusivity(unchecked) var drained: [HTTP2Stream] = []

  /// A server without TLS says nothing before its client does: a stranger is answered in
  /// HTTP/1.
  @exclusivity(unchecked) var awaitsPreface = false
  @exclusivity(unchecked) var bandwidth: BandwidthEstimator?
  /// `receivedBytes` at which the estimator wants to know.
  @exclusivity(unchecked) var nextProbe = Int.max
  /// Those who wait for the end of a congestion.
  @exclusivity(unchecked) var congested: [() -> Void] = []
  @exclusivity(unchecked) var congestionTimer: LoopTimer?

  // The way out.
  @exclusivity(unchecked) var isDirty = false
  @exclusivity(unchecked) var out: UnsafeMutablePointer<UInt8>
  @exclusivity(unchecked) var outCount = 0
  @exclusivity(unchecked) var backlog: UnsafeMutablePointer<UInt8>?
  @exclusivity(unchecked) var backlogOffset = 0
  @exclusivity(unchecked) var backlogEnd = 0
  @exclusivity(unchecked) var earlyFinishes = 0
  /// Received bytes to give back to the connection's window.
  @exclusivity(unchecked) var credit = 0
  /// Bytes queued on all streams.
  @exclusivity(unchecked) var queuedTotal = 0

  // Inside nghttp2 the session must not be destroyed: it waits in `pendingClose`.
  @exclusivity(unchecked) var depth = 0
  @exclusivity(unchecked) var pendingClose: HTTP2Error??
  @exclusivity(unchecked) var isTerminating = false

  // Guards.
  @exclusivity(unchecked) var idleFrames: TokenBucket
  @exclusivity(unchecked) var sentResets: TokenBucket
  @exclusivity(unchecked) var receivedResets: TokenBucket
  @exclusivity(unchecked) var handshakeTimer: LoopTimer?
  @exclusivity(unchecked) var settingsTimer: LoopTimer?
  @exclusivity(unchecked) var headersTimer: LoopTimer?
  @exclusivity(unchecked) var stallTimer: LoopTimer?
  @exclusivity(unchecked) var idleTimer: LoopTimer?
  @exclusivity(unchecked) var keepaliveTimer: LoopTimer?
  @exclusivity(unchecked) var shutdownTimer: LoopTimer?
  @exclusivity(unchecked) var ageTimer: LoopTimer?
  @exclusivity(unchecked) var farewellTimer: LoopTimer?
  @exclusivity(unchecked) var headersSince: UInt64 = 0
  @exclusivity(unchecked) var lastWrite: UInt64 = 0
  @exclusivity(unchecked) var lastRead: UInt64 = 0
  @exclusivity(unchecked) var idleSince: UInt64 = 0
  @exclusivity(unchecked) var pings: [PendingPing] = []
  @exclusivity(unchecked) var pingCount: UInt64 = 0
  @exclusivity(unchecked) var isGoingAway = false
  @exclusivity(unchecked) var hasSentFinalGoAway = false
  @exclusivity(unchecked) var openWasRefused = false
  /// Of a server.
  @exclusivity(unchecked) var watch = FrameWatch()

  struct PendingPing {
    var number: UInt64
    var sent: UInt64
    var completion: (Result<Duration, HTTP2Error>) -> Void
  }

  init(
    loop: EventLoop, isServer: Bool, limits: ConnectionLimits,
    peerAddress: SocketAddress, localAddress: SocketAddress
  ) {
    loop.assertCurrent()
    self.loop = loop
    self.isServer = isServer
    self.limits = limits
    maxHeaderListSize = limits.maxHeaderListSize
    highWaterMark = limits.highWaterMark
    lowWaterMark = limits.lowWaterMark
    self.peerAddress = peerAddress
    self.localAddress = localAddress
    out = loop.writeBuffer
    let configuration = limits.configuration
    idleFrames = TokenBucket(
      burst: configuration.idleFrameBurst, rate: configuration.idleFrameRate, now: loop.now)
    sentResets = TokenBucket(
      burst: configuration.sentResetBurst, rate: configuration.sentResetRate, now: loop.now)
    receivedResets = TokenBucket(
      burst: configuration.receivedResetBurst, rate: configuration.receivedResetRate, now: loop.now)
    startSession()
  }

  deinit {
    if let session { nghttp2_session_del(session) }
    backlog?.deallocate()
  }

  private func startSession() {
    let this = Unmanaged.passUnretained(self).toOpaque()
    var memory = loop.sessionMemory.functions
    let make = isServer ? nghttp2_session_server_new3 : nghttp2_session_client_new3
    let made = make(&session, SessionCallbacks.shared.pointer, this, limits.options, &memory)
    guard made == 0 else {
      session = nil
      isClosed = true
      return
    }
    let settings = limits.settings(isServer: isServer)
    let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
    _ = nghttp2_submit_settings(session, none, settings, settings.count)
    let window = Int32(ConnectionLimits.window(limits.configuration.initialConnectionWindow))
    _ = nghttp2_session_set_local_window_size(session, none, 0, window)
    let first = limits.configuration.firstStreamID
    if !isServer && first > 1 { _ = nghttp2_session_set_next_stream_id(session, first) }
    lastRead = loop.now
    lastWrite = loop.now
    idleSince = loop.now
    startTimers()
    loop.opened(connection: true)
    markDirty()
  }

  // MARK: Streams

  /// Streams the peer lets us have open at once; 100 until it has said so.
  public var peerMaxConcurrentStreams: Int {
    guard isOpen, let session else { return isClosed ? 0 : 100 }
    return Int(
      nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
  }

  /// Whether the numbers of streams have run out (RFC 9113, section 5.1.1): another
  /// connection must take over.
  public var hasUsedUpStreamIDs: Bool {
    guard let session, !isServer else { return false }
    return nghttp2_session_get_next_stream_id(session) > UInt32(Int32.max)
  }

  /// Whether `open` would succeed now.
  public var canOpenStream: Bool {
    guard let session, !isClosed, !isShuttingDown, !isServer else { return false }
    return openStreamCount < peerMaxConcurrentStreams
      && nghttp2_session_get_next_stream_id(session) <= UInt32(Int32.max)
  }

  /// Opens a stream with a request's headers (client). Throws
  /// `.connectionClosed`, `.connectionShuttingDown`, `.streamLimitReached`,
  /// `.streamIDsExhausted` or `.headersTooLarge`; nothing was sent then.
  public func open(
    handler: any StreamHandler, headers: HeaderList, endStream: Bool
  ) throws(HTTP2Error) -> HTTP2Stream {
    loop.assertCurrent()
    guard let session, !isClosed else {
      throw closeReason ?? HTTP2Error(.connectionClosed, "the connection is closed")
    }
    guard !isShuttingDown, !isServer else {
      throw HTTP2Error(.connectionShuttingDown, "the connection takes no more streams")
    }
    guard openStreamCount < peerMaxConcurrentStreams else {
      openWasRefused = true
      throw HTTP2Error(.streamLimitReached, "\(openStreamCount) streams are open")
    }
    guard headers.size <= HeaderList.maxSize else {
      throw HTTP2Error(.headersTooLarge, "a header list of \(headers.size) bytes")
    }
    let next = nghttp2_session_get_next_stream_id(session)
    guard next <= UInt32(Int32.max) else {
      throw HTTP2Error(.streamIDsExhausted, "the connection has used up its stream ids")
    }
    let stream = HTTP2Stream(id: Int32(next), connection: self)
    stream.slot.fill(handler)
    stream.heldHeaders = headers.storage
    stream.responseStarted = true
    stream.ending = endStream
    stream.hasBody = true
    let this = Unmanaged.passRetained(stream)
    let list = headers.storage
    var provider = stream.dataProvider()
    let id = withUnsafePointer(to: &provider) {
      nghttp2_submit_request(
        session, nil, list.fields, list.count, endStream ? nil : $0, this.toOpaque())
    }
    guard id == stream.id else {
      this.release()
      throw HTTP2Error(.connectionClosed, "nghttp2 refused a stream (\(id))")
    }
    link(this)
    markDirty()
    return stream
  }

  func link(_ this: Unmanaged<HTTP2Stream>) {
    openStreamCount &+= 1
    loop.opened(connection: false)
    let first = streams
    this._withUnsafeGuaranteedRef { $0.next = first }
    first?._withUnsafeGuaranteedRef { $0.previous = this }
    streams = this
  }

  /// Ends a stream's life; its handler hears of it here and nowhere else.
  func close(_ this: Unmanaged<HTTP2Stream>, code: UInt32) {
    let stream = this.takeRetainedValue()
    guard !stream.isClosed else { return }
    let next = stream.next
    next?._withUnsafeGuaranteedRef { $0.previous = stream.previous }
    if let previous = stream.previous {
      previous._withUnsafeGuaranteedRef { $0.next = next }
    } else {
      streams = next
    }
    stream.next = nil
    stream.previous = nil
    if decoding?.toOpaque() == this.toOpaque() { decoding = nil }
    openStreamCount &-= 1
    loop.ended(connection: false)
    if openStreamCount == 0 { idleSince = loop.now }
    if stream.finishesEarly { earlyFinishes &-= 1 }
    if isServer, stream.remoteEnded, !stream.isReset { watch.noteClosed(stream.id) }
    if isServer, stream.localEnded, code == HTTP2Code.noError {
      receivedResets.give(limits.resetsPerStream)
    }
    credit &+= Int(stream.unconsumed)
    stream.unconsumed = 0
    stream.isClosed = true
    if stream.queuedBytes > 0 { stream.dropQueue() }
    let handler = stream.slot.empty()
    handler?.stream(stream, closedWith: code)
    if openWasRefused && canOpenStream {
      openWasRefused = false
      self.handler?.connectionCanOpenStreams(self)
    }
  }

  // MARK: In

  /// Takes bytes from the peer.
  func receive(_ bytes: UnsafeRawBufferPointer) {
    guard let session, !isTerminating else { return }
    lastRead = loop.now
    if awaitsPreface {
      awaitsPreface = false
      if answerStranger(bytes) { return }
    }
    let violation = isServer ? watch.look(at: bytes) : nil
    depth &+= 1
    let result = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
      violation?.offset ?? bytes.count)
    depth &-= 1
    markDirty()
    if settlePendingClose() || isTerminating { return }
    if let violation, result >= 0 {
      terminate(HTTP2Error(.protocolViolation, violation.reason, code: violation.code))
      return
    }
    if result < 0 {
      receiveFailed(Int32(truncatingIfNeeded: result))
      return
    }
    if nghttp2_session_get_outbound_queue_size(session) > limits.maxQueuedFrames {
      abuse("too many frames wait for the peer")
      return
    }
    if headersSince != 0 && headersTimer == nil { watchHeaders() }
  }

  private func receiveFailed(_ result: Int32) {
    let text = String(cString: nghttp2_strerror(result))
    switch nghttp2_error(result) {
    case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
      terminate(
        HTTP2Error(.protocolViolation, "no HTTP/2 preface", code: HTTP2Code.protocolError))
    case NGHTTP2_ERR_FLOODED:
      abuse("nghttp2: \(text)")
    default:
      terminate(
        HTTP2Error(.protocolViolation, "nghttp2: \(text)", code: HTTP2Code.internalError))
    }
  }

  /// The peer has closed its side.
  func receiveEnd() {
    let clean = openStreamCount == 0
    tearDown(
      clean ? closeReason : HTTP2Error(.connectionClosed, "the peer closed the connection"))
  }
}
