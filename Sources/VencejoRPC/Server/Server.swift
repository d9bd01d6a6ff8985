import Glibc
import Synchronization
public import VencejoCompression
public import VencejoHTTP2
import VencejoProtobuf

/// A gRPC server: services behind listeners.
///
/// It serves from the moment it exists until it is shut down; `run()` does so on SIGTERM
/// and SIGINT.
public final class Server: Sendable {
  public struct Configuration: Sendable {
    /// Event loops, one thread each.
    public var threads = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    /// Of one message, in bytes; a longer one is answered RESOURCE_EXHAUSTED.
    public var maxReceiveMessageBytes = 4 * 1024 * 1024
    /// Handlers of one connection that may run at a time, cancelled ones included.
    public var maxHandlersPerConnection = 2_000
    /// Bytes of unary responses that may wait for the windows of one connection.
    public var maxPendingResponseBytesPerConnection = 256 * 1024 * 1024
    /// Handlers that may run at a time on all connections together; nil for as many as come.
    public var maxConcurrentCalls: Int?
    /// Calls beyond a limit are refused unseen (REFUSED_STREAM), which clients take as an
    /// invitation to try another server, instead of answered RESOURCE_EXHAUSTED.
    public var refusesBeyondLimits = false
    /// Of one message that a handler sends, in bytes; a longer one ends its call with
    /// RESOURCE_EXHAUSTED.
    public var maxSendMessageBytes = Int.max
    /// Answers calls of methods that no service has; its path means nothing. Made of
    /// `RawMessage`s it is a proxy. Without it they are answered UNIMPLEMENTED.
    public var unknownMethods: ServerMethod?
    /// How long a shutdown waits for calls to end.
    public var drainGrace: Duration = .seconds(10)
    public var connection = ConnectionConfiguration()
    /// Compresses all responses to clients that can read it; a handler may say otherwise.
    public var compression: Compression?
    /// See every call, the first one outermost. None costs nothing.
    public var interceptors: [any ServerInterceptor] = []
    /// Are told of every call and connection. None costs nothing.
    public var observers: [any RPCObserver] = []
    /// What `GET /` is answered with, for people who open the address with another client; nil
    /// refuses it as every other request that is no gRPC call.
    public var rootPage: String? = RootPage.text
    /// After a burst of calls or connections, gives the memory that the allocator keeps from it
    /// back to the system (malloc_trim(3), on a thread of its own, at most every two seconds).
    /// It concerns the whole process.
    public var returnsMemory = true

    public init() {}
  }

  /// An address and what protects it.
  public struct Endpoint: Sendable {
    public var address: SocketAddress
    /// nil: plain text.
    public var tls: ServerTLS?

    public init(_ address: SocketAddress, tls: ServerTLS? = nil) {
      self.address = address
      self.tls = tls
    }
  }

  private struct State {
    var services: [any Service]
    /// Of the shutdown, once one has begun.
    var deadline: ContinuousClock.Instant?
    var hasEnded = false
  }

  private let group: EventLoopGroup
  private let hosts: [ServerHost]
  private let listeners: [Listener]
  private let configuration: Configuration
  private let state: Mutex<State>
  /// Of channelz.
  private let shown: [ChannelzEntry]
  private let turn = Atomic<Int>(0)

  /// Throws `HTTP2Error` when an address cannot be bound, and ALREADY_EXISTS when two
  /// services offer the same method.
  public init(
    listening endpoints: [Endpoint], configuration: Configuration = .init(),
    services: [any Service]
  ) throws {
    let methods = try MethodTable(services)
    for service in services { service.mounted(with: services) }
    let group = try EventLoopGroup(count: configuration.threads)
    if configuration.returnsMemory { for loop in group.loops { loop.returnMemory() } }
    let limit = configuration.maxConcurrentCalls.map(CallLimit.init)
    let channelz = ChannelzRegistry.isEnabled ? ChannelzEntry(.server, "") : nil
    let hosts = group.loops.map { loop in
      ServerHost(
        loop: loop, methods: methods, limit: limit, configuration: configuration,
        channelz: channelz)
    }
    state = Mutex(State(services: services))
    var listeners: [Listener] = []
    do {
      for endpoint in endpoints {
        listeners.append(
          try Listener(
            address: endpoint.address, loops: group.loops,
            configuration: configuration.connection, tls: endpoint.tls
          ) { connection in
            hosts.first { $0.loop === connection.loop }?.add(connection)
          })
      }
    } catch {
      for listener in listeners { listener.close() }
      group.shutdown()
      throw error
    }
    self.group = group
    self.hosts = hosts
    self.listeners = listeners
    self.configuration = configuration
    shown = listeners.compactMap { listener in
      channelz.map { ChannelzEntry(.listener, "\(listener.localAddress)", parent: $0) }
    }
  }

  /// `tls` protects the TCP listeners; Unix sockets stay plain.
  public convenience init(
    listening addresses: [SocketAddress], tls: ServerTLS? = nil,
    configuration: Configuration = .init(), services: [any Service]
  ) throws {
    try self.init(
      listening: addresses.map { Endpoint($0, tls: $0.isUnix ? nil : tls) },
      configuration: configuration, services: services)
  }

  /// With `tls` a Unix socket speaks it too.
  public convenience init(
    listening address: SocketAddress, tls: ServerTLS? = nil,
    configuration: Configuration = .init(), @ServiceBuilder services: () -> [any Service]
  ) throws {
    try self.init(
      listening: [Endpoint(address, tls: tls)], configuration: configuration,
      services: services())
  }

  var isShutDown: Bool { state.withLock { $0.deadline != nil } }

  /// The hosts in turn.
  func nextHost() -> ServerHost {
    hosts[(turn.wrappingAdd(1, ordering: .relaxed).oldValue & .max) % hosts.count]
  }

  /// Where it listens, in the order given; port 0 is replaced by the real one.
  public var addresses: [SocketAddress] { listeners.map(\.localAddress) }

  // MARK: Services that come and go

  /// Serves another service, beside those there are, once this returns.
  ///
  /// Throws ALREADY_EXISTS when another service offers one of its methods.
  public func register(_ service: any Service) async throws(RPCError) {
    let change = state.withLock { state -> Result<([any Service], MethodTable), RPCError> in
      let all = state.services + [service]
      do throws(RPCError) {
        let methods = try MethodTable(all)
        state.services = all
        return .success((all, methods))
      } catch {
        return .failure(error)
      }
    }
    let (services, methods) = try change.get()
    await mount(services, methods)
  }

  /// Serves the service of that full name no longer, once this returns: calls under way go on,
  /// later ones are answered UNIMPLEMENTED. False when there is none.
  @discardableResult
  public func unregister(_ name: String) async -> Bool {
    let change = state.withLock { state -> ([any Service], MethodTable)? in
      let rest = state.services.filter { !$0.descriptors.contains { $0.fullName == name } }
      guard rest.count < state.services.count, let methods = try? MethodTable(rest) else {
        return nil
      }
      state.services = rest
      return (rest, methods)
    }
    guard let (services, methods) = change else { return false }
    await mount(services, methods)
    return true
  }

  private func mount(_ services: [any Service], _ methods: MethodTable) async {
    for service in services { service.mounted(with: services) }
    for host in hosts {
      await withUnsafeContinuation { continuation in
        host.loop.execute {
          host.methods = methods
          continuation.resume()
        }
      }
    }
  }

  // MARK: The end

  /// Stops accepting, tells every client with GOAWAY, waits for running calls for at most
  /// `grace`, or as long as the configuration says, then closes what is left. With `.zero`
  /// nothing is waited for.
  ///
  /// A second call waits for the end too, and hastens it when its grace ends earlier.
  public func shutdown(grace: Duration? = nil) async {
    let end = ContinuousClock.now + (grace ?? configuration.drainGrace)
    let isFirst = state.withLock { state in
      defer { state.deadline = min(state.deadline ?? end, end) }
      return state.deadline == nil
    }
    guard isFirst else {
      while !state.withLock({ $0.hasEnded }) { await Self.pause() }
      return
    }
    for listener in listeners { listener.close() }
    for host in hosts { host.loop.execute { host.drain() } }
    while hosts.contains(where: { $0.connectionCount > 0 }),
      ContinuousClock.now < state.withLock({ $0.deadline ?? end })
    {
      await Self.pause()
    }
    for host in hosts { host.loop.execute { host.closeAll() } }
    let hard = ContinuousClock.now + .seconds(1)
    while hosts.contains(where: { $0.connectionCount > 0 }), ContinuousClock.now < hard {
      await Self.pause()
    }
    group.shutdown()
    state.withLock { $0.hasEnded = true }
  }

  private static func pause() async {
    if Task.isCancelled { return await Task.yield() }
    try? await Task.sleep(for: .milliseconds(2))
  }

  /// Serves until SIGTERM or SIGINT, then shuts down gracefully. `beforeDraining` runs
  /// first: the place to end streams that would never end by themselves. `onceReady` runs as
  /// soon as the signals are caught: the place to tell whoever started the program, who may
  /// end it from then on. `reloading` runs on each SIGHUP, which without it ends the process:
  /// the place for `ServerTLS.reload()`.
  public func run(
    beforeDraining: @Sendable () async -> Void = {}, reloading: (@Sendable () -> Void)? = nil,
    onceReady: () -> Void = {}
  ) async {
    TerminationSignal.arm(hangup: reloading != nil)
    onceReady()
    await TerminationSignal.wait(hangup: reloading)
    await beforeDraining()
    await shutdown()
  }
}

/// Collects services in braces.
@resultBuilder
public enum ServiceBuilder {
  public static func buildExpression(_ service: any Service) -> [any Service] { [service] }
  public static func buildExpression(_ services: [any Service]) -> [any Service] { services }
  public static func buildBlock(_ parts: [any Service]...) -> [any Service] {
    parts.flatMap { $0 }
  }
  public static func buildOptional(_ part: [any Service]?) -> [any Service] { part ?? [] }
  public static func buildEither(first part: [any Service]) -> [any Service] { part }
  public static func buildEither(second part: [any Service]) -> [any Service] { part }
  public static func buildArray(_ parts: [[any Service]]) -> [any Service] { parts.flatMap { $0 } }
}

/// What one loop of a server shares among its connections.
///
/// `@unchecked Sendable`: `connections` and `methods` are confined to the loop, everything else
/// does not change.
final class ServerHost: @unchecked Sendable {
  let loop: EventLoop
  var methods: MethodTable
  /// For methods that are not in the table.
  let fallback: MethodTable.Entry?
  /// Of all loops together.
  let limit: CallLimit?
  let refusesBeyondLimits: Bool
  let receiveLimit: Int
  let sendLimit: Int
  let handlerLimit: Int
  let pendingResponseLimit: Int
  let interceptors: [any ServerInterceptor]
  let observers: [any RPCObserver]
  /// Those of `observers` that want to hear of calls.
  let callObservers: [any RPCObserver]
  /// The server's; nil when nobody looks.
  let channelz: ChannelzEntry?
  /// Whether somebody wants to know of calls.
  let isObserved: Bool
  let compression: Compression?
  let page: RootPage?
  let connection: ConnectionConfiguration
  private var connections: [ObjectIdentifier: ServerConnection] = [:]
  private let count = Atomic<Int>(0)
  private var draining = false

  init(
    loop: EventLoop, methods: MethodTable, limit: CallLimit?, configuration: Server.Configuration,
    channelz: ChannelzEntry?
  ) {
    self.loop = loop
    self.methods = methods
    self.limit = limit
    fallback = configuration.unknownMethods.map { MethodTable.Entry($0, .pool) }
    refusesBeyondLimits = configuration.refusesBeyondLimits
    sendLimit = configuration.maxSendMessageBytes
    receiveLimit = configuration.maxReceiveMessageBytes
    handlerLimit = configuration.maxHandlersPerConnection
    pendingResponseLimit = configuration.maxPendingResponseBytesPerConnection
    interceptors = configuration.interceptors
    observers = configuration.observers
    callObservers = observers.filter(\.observesCalls)
    self.channelz = channelz
    isObserved = channelz != nil || !callObservers.isEmpty
    compression = configuration.compression
    page = configuration.rootPage.map(RootPage.init)
    connection = configuration.connection
  }

  /// Any thread.
  var connectionCount: Int { count.load(ordering: .relaxed) }

  func add(_ http2: HTTP2Connection) {
    let connection = ServerConnection(http2, host: self)
    connections[ObjectIdentifier(connection)] = connection
    count.add(1, ordering: .relaxed)
    for observer in observers { observer.connectionBegan(http2.peerAddress) }
    if draining { http2.shutdownGracefully() }
  }

  func remove(_ connection: ServerConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    count.subtract(1, ordering: .relaxed)
  }

  func drain() {
    draining = true
    for connection in connections.values { connection.http2.shutdownGracefully() }
  }

  func closeAll() {
    for connection in connections.values { connection.http2.close(0) }
  }
}
