import VencejoCompression
import VencejoHTTP2

/// What a channel knows of its server: its addresses, the connections to them, and the calls
/// that wait.
///
/// `@unchecked Sendable`: confined to its loop, but for what does not change.
final class ChannelCore: @unchecked Sendable {
  private enum State {
    /// Nobody needs the server.
    case idle
    /// Its addresses are being looked up for the first time.
    case resolving
    /// They cannot be found; another attempt is due.
    case unresolved(RPCError)
    case active
    case closed
  }

  let loop: EventLoop
  let tls: ClientTLS?
  let target: Target
  let configuration: Channel.Configuration
  /// Any thread. Those of `observers` that want to hear of calls.
  let callObservers: [any RPCObserver]
  private var state = State.idle

  /// Of channelz. Nil when nobody looks.
  let channelz: ChannelzEntry?
  private var shown = ChannelzEntry.Connectivity.idle

  // Balancing.
  private var subchannels: [Subchannel] = []
  private var turn = 0
  /// The only connection there is to choose from, so that a call need not look further.
  private var sole: HTTP2Connection?
  private var waiting = CallQueue()
  private var isPumping = false
  /// Take no new calls and live until theirs have ended.
  private var draining: [ObjectIdentifier: HTTP2Connection] = [:]

  // Names.
  private var resolution: Task<Void, Never>?
  private var generation = 0
  private var resolvedAt: UInt64 = 0
  private var resolutionFailures = 0
  private var resolutionTimer: LoopTimer?

  /// The service config in force; nil before there is one.
  private(set) var config: ServiceConfig?
  private(set) var isConfigured: Bool
  private var headers: [String: HeaderList] = [:]
  var throttle: RetryThrottle
  private var keepaliveFactor = 1

  // Rest.
  private var activeCalls = 0
  private var lastActive: UInt64 = 0
  private var idleTimer: LoopTimer?

  /// `config` is the configuration's service config.
  init(
    loop: EventLoop, target: Target, tls: ClientTLS?, configuration: Channel.Configuration,
    config: ServiceConfig?, channelz: ChannelzEntry?
  ) {
    self.channelz = channelz
    self.loop = loop
    self.target = target
    self.tls = tls
    self.configuration = configuration
    self.config = config
    callObservers = configuration.observers.filter(\.observesCalls)
    throttle = RetryThrottle(config?.throttling)
    // A resolver may have something to say of the calls that wait for it.
    isConfigured = if case .resolved = target.addresses { config != nil } else { true }
  }

  // MARK: What does not change, any thread

  var retryPolicy: RetryPolicy? { configuration.retryPolicy }
  var compression: Compression? { configuration.compression }
  var interceptors: [any ClientInterceptor] { configuration.interceptors }
  var observers: [any RPCObserver] { configuration.observers }
  var targetName: String { target.description }

  // MARK: Calls

  func submit(_ call: any PendingCall) {
    guard let sole, waiting.isEmpty, sole.canOpenStream, call.open(on: sole) else {
      return submitSlowly(call)
    }
  }

  private func submitSlowly(_ call: any PendingCall) {
    switch state {
    case .closed: call.abandon(Self.closedError)
    case .idle:
      waiting.append(call)
      wake()
    case .resolving: waiting.append(call)
    case .unresolved(let error): wait(call, unless: error)
    case .active:
      if waiting.isEmpty, start(call) { return }
      wait(call, unless: failure)
      for subchannel in subchannels where !subchannel.isReady { subchannel.connect() }
    }
  }

  private func wait(_ call: any PendingCall, unless error: RPCError?) {
    if let error, !call.waitsForReady { call.fail(error) } else { waiting.append(call) }
  }

  /// One server after the other.
  private func start(_ call: any PendingCall) -> Bool {
    for _ in subchannels.indices {
      turn = (turn + 1) % max(subchannels.count, 1)
      if subchannels.indices.contains(turn), subchannels[turn].start(call) { return true }
    }
    return false
  }

  var hasWaitingCalls: Bool { !waiting.isEmpty }

  /// A stream has closed: there may be room for a call that waits.
  func streamClosed() {
    if !waiting.isEmpty { pump() }
  }

  private func pump() {
    // What starting a call changes may bring us here again.
    guard !isPumping else { return }
    isPumping = true
    while let call = waiting.popFirst() {
      guard start(call) else {
        waiting.putBack(call)
        break
      }
    }
    isPumping = false
    if let failure, !waiting.isEmpty { fail(failure) }
  }

  /// Why no server can take a call; nil while one can, or may soon.
  private var failure: RPCError? {
    var last = RPCError(.unavailable, "\(target) has no address", origin: .transport)
    for subchannel in subchannels {
      guard let failure = subchannel.failure else { return nil }
      last = failure
    }
    return last
  }

  /// Something happened to a subchannel.
  func changed() {
    guard case .active = state else { return }
    let ready = subchannels.filter(\.isReady)
    sole = ready.count == 1 ? ready[0].sole : nil
    if let channelz { show(channelz) }
    if let failure { fail(failure) }
    if !waiting.isEmpty { pump() }
  }

  private func show(_ entry: ChannelzEntry) {
    let now: ChannelzEntry.Connectivity =
      switch state {
      case .idle: .idle
      case .resolving: .connecting
      case .unresolved: .transientFailure
      case .closed: .shutdown
      case .active where subchannels.contains(where: \.isReady): .ready
      case .active where failure != nil: .transientFailure
      case .active where subchannels.contains(where: \.isConnecting): .connecting
      case .active: .idle
      }
    guard now != shown else { return }
    shown = now
    entry.note("\(now)", now == .transientFailure ? .ctWarning : .ctInfo, now)
  }

  /// Ends the calls that do not wait for better times.
  private func fail(_ error: RPCError) {
    for call in waiting.takeAll() {
      if call.waitsForReady {
        if !call.isOver { waiting.append(call) }
      } else {
        call.fail(error)
      }
    }
  }

  func callBegan() { activeCalls += 1 }

  func callEnded() {
    activeCalls -= 1
    lastActive = loop.now
  }

  // MARK: For subchannels

  var connectionLimit: Int { max(configuration.maxConnectionsPerAddress, 1) }
  var attemptDelay: Duration { configuration.attemptDelay }
  var healthService: String? { config?.healthService }

  func backoff(afterFailures failures: Int) -> Duration {
    configuration.backoff.delay(afterFailures: failures, random: configuration.random())
  }

  var connectionConfiguration: ConnectionConfiguration {
    var connection = configuration.connection
    if let interval = connection.keepaliveInterval {
      connection.keepaliveInterval = interval * keepaliveFactor
    }
    return connection
  }

  func noteClosed(_ error: HTTP2Error) {
    // gRFC A8: the server tolerates fewer PINGs than were sent.
    if error.code == HTTP2Code.enhanceYourCalm, error.message.hasSuffix("too_many_pings") {
      keepaliveFactor = min(keepaliveFactor * 2, 1 << 10)
    }
  }

  func drains(_ connection: HTTP2Connection) { draining[ObjectIdentifier(connection)] = connection }
  func forget(_ connection: HTTP2Connection) { draining[ObjectIdentifier(connection)] = nil }

  // MARK: Names

  /// Leaves idleness.
  private func wake() {
    watchIdleness()
    switch target.addresses {
    case .known(let addresses):
      update(addresses)
    case .inProcess(let connector):
      state = .active
      subchannels = [Subchannel(.inProcess(connector), core: self, staysConnected: false)]
      subchannels[0].connect()
    case .resolved(let resolver):
      state = .resolving
      if let channelz { show(channelz) }
      resolve(resolver)
    }
  }

  private func resolve(_ resolver: any Channel.Resolver) {
    resolutionTimer?.cancel()
    resolutionTimer = nil
    generation += 1
    let (loop, current) = (loop, generation)
    resolution = Task { [weak self] in
      let found: @Sendable (Channel.Resolution) -> Void = { [weak self] resolution in
        loop.execute { [weak self] in self?.found(resolution, current) }
      }
      var failure: RPCError?
      do {
        try await resolver.resolve(found)
      } catch {
        failure = error as? RPCError ?? RPCError(.unavailable, "the resolver failed: \(error)")
      }
      let (core, error) = (self, failure)
      loop.execute { core?.resolutionEnded(error, current) }
    }
  }

  private func found(_ resolution: Channel.Resolution, _ number: Int) {
    guard number == generation else { return }
    if let text = resolution.serviceConfig {
      do throws(RPCError) {
        config = try ServiceConfig(json: text)
        throttle = RetryThrottle(config?.throttling)
      } catch {
        guard config != nil else { return unresolved(RPCError(.unavailable, error.message)) }
      }
    }
    isConfigured = true
    for call in waiting.all { call.configure() }
    resolutionFailures = 0
    update(resolution.addresses)
  }

  private func resolutionEnded(_ error: RPCError?, _ number: Int) {
    guard number == generation else { return }
    resolution = nil
    resolvedAt = loop.now
    switch state {
    case .resolving, .unresolved:
      unresolved(error ?? RPCError(.unavailable, "the resolver of \(target) found nothing"))
    default: break
    }
  }

  private func unresolved(_ error: RPCError) {
    if case .active = state { return }
    state = .unresolved(error)
    if let channelz { show(channelz) }
    fail(error)
    let delay = backoff(afterFailures: resolutionFailures)
    resolutionFailures += 1
    resolutionTimer = loop.schedule(after: delay) { [weak self] in
      guard let self, case .unresolved = state, case .resolved(let resolver) = target.addresses
      else { return }
      resolve(resolver)
    }
  }

  /// The addresses may be out of date; they are looked up again, not too often.
  func resolveAgain() {
    guard case .active = state, case .resolved(let resolver) = target.addresses, resolution == nil,
      resolutionTimer == nil
    else { return }
    let pause = UInt64(clamping: configuration.resolutionInterval.nanoseconds)
    let elapsed = loop.now &- resolvedAt
    guard elapsed < pause else { return resolve(resolver) }
    resolutionTimer = loop.schedule(afterNanoseconds: pause &- elapsed) { [weak self] in
      guard let self, case .active = state else { return }
      resolve(resolver)
    }
  }

  // MARK: Balancing

  private func update(_ addresses: [SocketAddress]) {
    guard !isClosed else { return }
    state = .active
    switch config?.balancing ?? .pickFirst {
    case .pickFirst: pickFirst(addresses)
    case .roundRobin: roundRobin(addresses)
    }
    changed()
  }

  private var isClosed: Bool { if case .closed = state { true } else { false } }

  private func pickFirst(_ addresses: [SocketAddress]) {
    if subchannels.count == 1, case .addresses(let known) = subchannels[0].source {
      let kept = subchannels[0].connections.allSatisfy { addresses.contains($0.peerAddress) }
      if known == addresses || kept && subchannels[0].isReady {
        subchannels[0].source = .addresses(addresses)
        return
      }
    }
    for old in subchannels { old.retire() }
    subchannels = [Subchannel(.addresses(addresses), core: self, staysConnected: false)]
    if hasWaitingCalls { subchannels[0].connect() }
  }

  private func roundRobin(_ addresses: [SocketAddress]) {
    var left = subchannels
    var new: [Subchannel] = []
    var seen: Set<SocketAddress> = []
    for address in addresses where seen.insert(address).inserted {
      let same = left.firstIndex {
        if case .addresses(let list) = $0.source {
          list == [address] && $0.staysConnected
        } else {
          false
        }
      }
      new.append(
        same.map { left.remove(at: $0) }
          ?? Subchannel(.addresses([address]), core: self, staysConnected: true))
    }
    subchannels = new
    for old in left { old.retire() }
    for subchannel in new where !subchannel.isReady { subchannel.connect() }
  }

  // MARK: Rest and the end

  private func watchIdleness() {
    guard let limit = configuration.idleTimeout else { return }
    let pause = UInt64(clamping: limit.nanoseconds)
    let rested = activeCalls > 0 || lastActive == 0 ? 0 : loop.now &- lastActive
    idleTimer = loop.schedule(afterNanoseconds: pause &- min(rested, pause)) { [weak self] in
      guard let self, !isClosed else { return }
      if activeCalls == 0, loop.now &- lastActive >= pause { rest() } else { watchIdleness() }
    }
  }

  private func rest() {
    stopResolving()
    state = .idle
    sole = nil
    let left = subchannels
    subchannels = []
    for subchannel in left { subchannel.retire() }
    if let channelz { show(channelz) }
  }

  private func stopResolving() {
    generation += 1
    resolution?.cancel()
    resolution = nil
    resolutionTimer?.cancel()
    resolutionTimer = nil
  }

  func close() {
    guard !isClosed else { return }
    stopResolving()
    state = .closed
    idleTimer?.cancel()
    sole = nil
    for call in waiting.takeAll() { call.abandon(Self.closedError) }
    let left = subchannels
    subchannels = []
    for subchannel in left { subchannel.close() }
    for connection in draining.values { connection.close() }
    draining = [:]
    if let channelz { show(channelz) }
  }

  private static var closedError: RPCError { RPCError(.unavailable, "the channel is closed") }

  /// What a stream closed without a status means.
  func error(forStreamClosedWith code: UInt32, on connection: HTTP2Connection) -> RPCError {
    if code == HTTP2Code.connectionLost {
      if isClosed { return Self.closedError }
      // The streams learn of the end before the connection's handler does.
      let reason = connection.closeReason.map { "the connection broke: \($0)" }
      return RPCError(.unavailable, reason ?? "the connection was lost", origin: .transport)
    }
    if code == HTTP2Code.refusedStream {
      return RPCError(
        .unavailable, "the server refused the call before it looked at it", origin: .transport)
    }
    return RPCError(
      .mapping(resetCode: code), "the server reset the stream with code \(code)",
      origin: .transport)
  }

  // MARK: Request fields

  /// Whom credentials are for (gRPC "Authentication"): the service's URL, without the standard
  /// port. Any thread.
  func audience(_ path: String) -> String {
    var host = target.authority[...]
    if host.hasSuffix(":443") { host = host.dropLast(4) }
    let service = path.lastIndex(of: "/").map { path[..<$0] } ?? path[...]
    return "https://\(host)\(service)"
  }

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

/// Calls in the order they came.
private struct CallQueue {
  private var calls: [any PendingCall] = []
  private var head = 0

  var isEmpty: Bool { head == calls.count }
  var all: ArraySlice<any PendingCall> { calls[head...] }

  mutating func append(_ call: any PendingCall) { calls.append(call) }

  mutating func popFirst() -> (any PendingCall)? {
    guard head < calls.count else { return nil }
    defer {
      head += 1
      // Moved now and then, not with every call.
      if head == calls.count || head >= 1_024 {
        calls.removeFirst(head)
        head = 0
      }
    }
    return calls[head]
  }

  mutating func putBack(_ call: any PendingCall) {
    if head > 0 {
      head -= 1
      calls[head] = call
    } else {
      calls.insert(call, at: 0)
    }
  }

  mutating func takeAll() -> [any PendingCall] {
    defer {
      calls = []
      head = 0
    }
    return Array(calls[head...])
  }
}
