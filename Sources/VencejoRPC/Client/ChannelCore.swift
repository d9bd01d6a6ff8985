import VencejoCompression
import VencejoHTTP2

/// The connection of a channel and the calls that wait for it.
///
/// `@unchecked Sendable`: confined to its loop.
final class ChannelCore: @unchecked Sendable {
  private enum State {
    case idle
    case connecting
    case ready(HTTP2Connection)
    /// Waits before the next attempt.
    case backoff(RPCError)
    case closed
  }

  let loop: EventLoop
  private let target: Target
  private let tls: ClientTLS?
  private let configuration: Channel.Configuration
  private var state = State.idle { didSet { show() } }
  /// Of channelz: the channel, and what it connects by. Nil when nobody looks.
  let channelz: ChannelzEntry?
  let channelzSubchannel: ChannelzEntry?
  private var waiting: [ClientCall] = []
  private var headers: [String: HeaderList] = [:]
  private var failures = 0
  var throttle = RetryThrottle()
  private var lastError: RPCError?
  private var backoffTimer: LoopTimer?

  /// Any thread.
  var retryPolicy: RetryPolicy? { configuration.retryPolicy }
  /// Any thread.
  var compression: Compression? { configuration.compression }
  /// Any thread.
  var interceptors: [any ClientInterceptor] { configuration.interceptors }
  /// Any thread.
  var observers: [any RPCObserver] { configuration.observers }
  /// Any thread. Those of `observers` that want to hear of calls.
  let callObservers: [any RPCObserver]
  /// Any thread.
  var targetName: String { target.description }

  init(
    loop: EventLoop, target: Target, tls: ClientTLS?, configuration: Channel.Configuration,
    channelz: ChannelzEntry?
  ) {
    self.channelz = channelz
    channelzSubchannel = channelz.map {
      ChannelzEntry(.subchannel, target.description, parent: $0)
    }
    self.loop = loop
    self.target = target
    self.tls = tls
    self.configuration = configuration
    callObservers = configuration.observers.filter(\.observesCalls)
  }

  func submit(_ call: ClientCall) {
    switch state {
    case .closed: call.abandon(Self.closedError)
    case .backoff(let error) where !call.waitsForReady: call.abandon(error)
    case .backoff, .connecting: waiting.append(call)
    case .idle:
      waiting.append(call)
      connect()
    case .ready(let connection):
      guard waiting.isEmpty, connection.canOpenStream, call.open(on: connection) else {
        waiting.append(call)
        pump()
        return
      }
    }
  }

  /// A stream of the connection has closed: there may be room for a call that waits.
  func streamClosed() {
    if !waiting.isEmpty { pump() }
  }

  private func pump() {
    guard case .ready(let connection) = state else { return }
    var opened = 0
    for call in waiting {
      guard connection.canOpenStream, call.open(on: connection) else { break }
      opened += 1
    }
    waiting.removeFirst(opened)
  }

  private func show() {
    guard let channelz else { return }
    let (text, severity, state): (String, ChannelzEntry.Severity, ChannelzEntry.Connectivity) =
      switch state {
      case .idle: ("idle", .ctInfo, .idle)
      case .connecting: ("connecting", .ctInfo, .connecting)
      case .ready(let connection): ("ready: \(connection.peerAddress)", .ctInfo, .ready)
      case .backoff(let error): (error.message, .ctWarning, .transientFailure)
      case .closed: ("closed", .ctInfo, .shutdown)
      }
    for entry in [channelz, channelzSubchannel] { entry?.note(text, severity, state) }
  }

  // MARK: Connecting

  private func connect() {
    state = .connecting
    let target = target
    let loop = loop
    switch target.addresses {
    case .known(let addresses): attempt(addresses[...])
    case .inProcess(let connector):
      guard let descriptor = connector() else {
        return failed(RPCError(.unavailable, "the server is shut down", origin: .transport))
      }
      do {
        connected(
          try HTTP2Connection.adopt(
            descriptor: descriptor, isServer: false, on: loop,
            configuration: configuration.connection))
      } catch {
        failed(RPCError(.unavailable, "no connection: \(error)", origin: .transport))
      }
    case .host(let host, let port):
      // getaddrinfo blocks for seconds when a name server is away.
      detachThread {
        let result = Resolver.resolve(host: host, port: port)
        loop.execute {
          guard case .connecting = self.state else { return }
          switch result {
          case .success(let addresses): self.attempt(addresses[...])
          case .failure(let error): self.failed(error)
          }
        }
      }
    }
  }

  private func attempt(_ addresses: ArraySlice<SocketAddress>) {
    guard let address = addresses.first else {
      return failed(
        lastError ?? RPCError(.unavailable, "\(target) has no address", origin: .transport))
    }
    HTTP2Connection.connect(
      to: address, on: loop, configuration: configuration.connection, tls: tls
    ) { [self] result in
      switch (result, state) {
      case (.success(let connection), .connecting): connected(connection)
      case (.success(let connection), _): connection.close(0)
      case (.failure(let error), .connecting):
        lastError = RPCError(
          .unavailable, "no connection to \(address): \(error)", origin: .transport)
        attempt(addresses.dropFirst())
      case (.failure, _): break
      }
    }
  }

  private func connected(_ connection: HTTP2Connection) {
    connection.handler = ChannelConnectionHandler(core: self)
    if let channelzSubchannel { connection.show(below: channelzSubchannel) }
    for observer in observers { observer.connectionBegan(connection.peerAddress) }
    failures = 0
    lastError = nil
    state = .ready(connection)
    pump()
  }

  private func failed(_ error: RPCError) {
    state = .backoff(error)
    let delay = configuration.backoff.delay(afterFailures: failures)
    failures += 1
    backoffTimer = loop.schedule(after: delay) { [weak self] in self?.backoffEnded() }
    let calls = waiting
    waiting = calls.filter(\.waitsForReady)
    for call in calls where !call.waitsForReady { call.abandon(error) }
  }

  private func backoffEnded() {
    guard case .backoff = state else { return }
    state = .idle
    if !waiting.isEmpty { connect() }
  }

  fileprivate func goAway(_ connection: HTTP2Connection) {
    guard case .ready(let current) = state, current === connection else { return }
    connection.shutdownGracefully()
    leave()
  }

  fileprivate func closed(_ connection: HTTP2Connection, error: HTTP2Error?) {
    connection.handler = nil
    for observer in observers { observer.connectionEnded(connection.peerAddress, error) }
    guard case .ready(let current) = state, current === connection else { return }
    if let error {
      lastError = RPCError(.unavailable, "the connection broke: \(error)", origin: .transport)
    }
    leave()
  }

  private func leave() {
    state = .idle
    if !waiting.isEmpty { connect() }
  }

  /// What a stream closed without a status means.
  func error(forStreamClosedWith code: UInt32) -> RPCError {
    if code == HTTP2Code.connectionLost {
      // The streams learn of the end before the connection's handler does.
      if case .ready(let connection) = state, let reason = connection.closeReason {
        return RPCError(.unavailable, "the connection broke: \(reason)", origin: .transport)
      }
      return lastError ?? RPCError(.unavailable, "the connection was lost", origin: .transport)
    }
    if code == HTTP2Code.refusedStream {
      return RPCError(
        .unavailable, "the server refused the call before it looked at it", origin: .transport)
    }
    return RPCError(
      .mapping(resetCode: code), "the server reset the stream with code \(code)",
      origin: .transport)
  }

  func close() {
    let connection: HTTP2Connection? = if case .ready(let ready) = state { ready } else { nil }
    state = .closed
    backoffTimer?.cancel()
    lastError = Self.closedError
    let calls = waiting
    waiting = []
    for call in calls { call.abandon(Self.closedError) }
    connection?.close(0)
  }

  private static var closedError: RPCError { RPCError(.unavailable, "the channel is closed") }

  // MARK: Request fields

  /// The fields every call of a method has in common, packed once.
  func requestHeaders(_ path: String) -> HeaderList {
    if let list = headers[path] { return list }
    let list = HeaderList([
      (":method", "POST"), (":scheme", tls == nil ? "http" : "https"), (":path", path),
      (":authority", target.authority), ("te", "trailers"),
      ("content-type", "application/grpc"), ("user-agent", configuration.userAgent),
      ("grpc-accept-encoding", Compression.accepted),
    ])
    // Paths come from code; a proxy may still make many of them.
    if headers.count < 1_024 { headers[path] = list }
    return list
  }
}

/// Keeps the channel informed of its connection.
private final class ChannelConnectionHandler: ConnectionHandler {
  let core: ChannelCore

  init(core: ChannelCore) { self.core = core }

  func connection(
    _ connection: HTTP2Connection, didReceiveGoAway lastStreamID: Int32, code: UInt32
  ) {
    core.goAway(connection)
  }

  func connectionCanOpenStreams(_ connection: HTTP2Connection) { core.streamClosed() }

  func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?) {
    core.closed(connection, error: error)
  }
}
