import VencejoHTTP2

/// The connections to one server, and what is known of its health.
///
/// `@unchecked Sendable`: confined to the channel's loop.
final class Subchannel: @unchecked Sendable {
  enum Source {
    /// The first that answers.
    case addresses([SocketAddress])
    case inProcess(@Sendable () -> Int32?)
  }

  var source: Source
  /// The channel; a cycle until `retire` or `close`.
  private let core: ChannelCore
  /// Connects without being asked (round_robin).
  let staysConnected: Bool
  private(set) var connections: [HTTP2Connection] = []
  private var attempt: ConnectionAttempt?
  private var began: UInt64 = 0
  private var failures = 0
  private var timer: LoopTimer?
  private var health: HealthWatch?
  private var isRetired = false
  /// Why it cannot take calls; nil while it can, or still may.
  private(set) var failure: RPCError?

  /// Nil when nobody looks.
  private let channelz: ChannelzEntry?

  init(_ source: Source, core: ChannelCore, staysConnected: Bool) {
    self.source = source
    self.core = core
    self.staysConnected = staysConnected
    let name: String =
      switch source {
      case .addresses(let list): list.map { "\($0)" }.joined(separator: ",")
      case .inProcess: "in process"
      }
    channelz = core.channelz.map { ChannelzEntry(.subchannel, name, parent: $0) }
  }

  var isConnecting: Bool { attempt != nil }

  var isReady: Bool { !connections.isEmpty && health?.isServing ?? true }

  /// Its only connection, for calls that need look no further.
  var sole: HTTP2Connection? { isReady && connections.count == 1 ? connections[0] : nil }

  /// Starts the call on one of its connections; makes another when all are full and it may.
  func start(_ call: any PendingCall) -> Bool {
    guard isReady else { return false }
    for connection in connections where connection.canOpenStream && call.open(on: connection) {
      return true
    }
    let spent = connections.filter { $0.hasUsedUpStreamIDs || $0.isShuttingDown }
    for connection in spent { leave(connection) }
    if connections.isEmpty || connections.count < core.connectionLimit { connect() }
    return false
  }

  // MARK: Connecting

  /// Nothing where it is at it already, or has to wait.
  func connect() {
    guard !isRetired, attempt == nil, timer == nil else { return }
    began = core.loop.now
    if connections.isEmpty { channelz?.note("connecting", .ctInfo, .connecting) }
    let delay = core.backoff(afterFailures: failures)
    var configuration = core.connectionConfiguration
    // "Connection Backoff Protocol": an attempt may take as long as the wait for the next.
    configuration.connectTimeout = max(configuration.connectTimeout, delay)
    if !connections.isEmpty {
      // One more than usual: gone when it is needed no longer.
      configuration.idleTimeout = min(configuration.idleTimeout ?? .seconds(30), .seconds(30))
    }
    let addresses: [SocketAddress] = if case .addresses(let list) = source { list } else { [] }
    let attempt = ConnectionAttempt(
      addresses, on: core.loop, configuration: configuration, tls: core.tls,
      delay: core.attemptDelay
    ) { [self] result in
      self.attempt = nil
      switch result {
      case .success(let connection): connected(connection)
      case .failure(let error): failed(error, delay)
      }
    }
    self.attempt = attempt
    if channelz != nil { core.changed() }
    guard case .inProcess(let connector) = source else { return attempt.begin() }
    do {
      guard let descriptor = connector() else {
        self.attempt = nil
        return failed(RPCError(.unavailable, "the server is shut down", origin: .transport), delay)
      }
      attempt.begin(
        with: try HTTP2Connection.adopt(
          descriptor: descriptor, isServer: false, on: core.loop, configuration: configuration))
    } catch {
      self.attempt = nil
      failed(RPCError(.unavailable, "no connection: \(error)", origin: .transport), delay)
    }
  }

  private func connected(_ connection: HTTP2Connection) {
    failures = 0
    failure = nil
    connection.handler = SubchannelConnection(self)
    connections.append(connection)
    if let channelz {
      connection.show(below: channelz)
      channelz.note("connected to \(connection.peerAddress)", .ctInfo, .ready)
    }
    for observer in core.observers { observer.connectionBegan(connection.peerAddress) }
    if let service = core.healthService, staysConnected, health == nil { watch(service) }
    core.changed()
  }

  private func failed(_ error: RPCError, _ delay: Duration) {
    guard !isRetired else { return }
    // The wait counts from the attempt's beginning.
    let elapsed = core.loop.now &- began
    let wait = UInt64(clamping: delay.nanoseconds)
    failures += 1
    timer = core.loop.schedule(afterNanoseconds: wait > elapsed ? wait &- elapsed : 0) {
      [weak self] in self?.waitEnded()
    }
    if connections.isEmpty {
      failure = error
      channelz?.note(error.message, .ctWarning, .transientFailure)
    }
    core.resolveAgain()
    core.changed()
  }

  private func waitEnded() {
    timer = nil
    guard !isRetired else { return }
    if staysConnected {
      if connections.isEmpty { connect() }
    } else {
      // pick_first is idle until a call needs it.
      failure = nil
      if core.hasWaitingCalls { connect() }
    }
  }

  // MARK: Health

  private func watch(_ service: String) {
    guard let connection = connections.first else { return }
    let watch = HealthWatch(service, on: connection, core: core) { [weak self] in
      guard let self, !isRetired else { return }
      failure = health?.failure
      core.changed()
    }
    health = watch
    watch.begin()
  }

  // MARK: Losing connections

  fileprivate func goesAway(_ connection: HTTP2Connection) {
    connection.shutdownGracefully()
    leave(connection)
  }

  fileprivate func closed(_ connection: HTTP2Connection, _ error: HTTP2Error?) {
    connection.handler = nil
    core.forget(connection)
    for observer in core.observers { observer.connectionEnded(connection.peerAddress, error) }
    if let error { core.noteClosed(error) }
    leave(connection)
  }

  fileprivate func hasRoom() { core.changed() }

  /// Opens nothing more on the connection; what runs there goes on.
  private func leave(_ connection: HTTP2Connection) {
    guard let index = connections.firstIndex(where: { $0 === connection }) else { return }
    connections.remove(at: index)
    if !connection.isClosed {
      connection.shutdownGracefully()
      if !connection.isClosed { core.drains(connection) }
    }
    health?.cancel()
    health = nil
    guard !isRetired else { return }
    if connections.isEmpty {
      channelz?.note("no connection is left", .ctInfo, .idle)
      core.resolveAgain()
      if staysConnected {
        // Not faster than the backoff, or a server that hangs up would be called for ever.
        let wait = UInt64(clamping: core.backoff(afterFailures: 0).nanoseconds)
        let elapsed = core.loop.now &- began
        timer = core.loop.schedule(afterNanoseconds: wait > elapsed ? wait &- elapsed : 0) {
          [weak self] in self?.waitEnded()
        }
      }
    } else if let service = core.healthService, staysConnected {
      watch(service)
    }
    core.changed()
  }

  /// Takes no more calls; those that run go on.
  func retire() {
    let left = stop()
    for connection in left {
      connection.shutdownGracefully()
      if !connection.isClosed { core.drains(connection) }
    }
  }

  /// Ends everything at once.
  func close() {
    for connection in stop() { connection.close() }
  }

  private func stop() -> [HTTP2Connection] {
    isRetired = true
    channelz?.note("given up", .ctInfo, .shutdown)
    attempt?.cancel()
    attempt = nil
    timer?.cancel()
    timer = nil
    health?.cancel()
    health = nil
    defer { connections = [] }
    return connections
  }
}

/// Keeps a subchannel informed of its connection.
private final class SubchannelConnection: ConnectionHandler {
  let subchannel: Subchannel

  init(_ subchannel: Subchannel) { self.subchannel = subchannel }

  func connection(
    _ connection: HTTP2Connection, didReceiveGoAway lastStreamID: Int32, code: UInt32
  ) {
    subchannel.goesAway(connection)
  }

  func connectionCanOpenStreams(_ connection: HTTP2Connection) { subchannel.hasRoom() }

  func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?) {
    subchannel.closed(connection, error)
  }
}
