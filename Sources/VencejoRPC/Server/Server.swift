import Glibc
import Synchronization
public import VencejoCompression
public import VencejoHTTP2

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
    /// How long a shutdown waits for calls to end.
    public var drainGrace: Duration = .seconds(10)
    public var connection = ConnectionConfiguration()
    /// Compresses all responses to clients that can read it; a handler may say otherwise.
    public var compression: Compression?
    /// See every call, the first one outermost. None costs nothing.
    public var interceptors: [any ServerInterceptor] = []
    /// Are told of every call and connection. None costs nothing.
    public var observers: [any RPCObserver] = []

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

  private let group: EventLoopGroup
  private let hosts: [ServerHost]
  private let listeners: [Listener]
  private let configuration: Configuration
  private let state = Mutex(false)
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
    let hosts = group.loops.map { loop in
      ServerHost(loop: loop, methods: methods, configuration: configuration)
    }
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

  var isShutDown: Bool { state.withLock { $0 } }

  /// The hosts in turn.
  func nextHost() -> ServerHost {
    hosts[(turn.wrappingAdd(1, ordering: .relaxed).oldValue & .max) % hosts.count]
  }

  /// Where it listens, in the order given; port 0 is replaced by the real one.
  public var addresses: [SocketAddress] { listeners.map(\.localAddress) }

  /// Stops accepting, tells every client with GOAWAY, waits for running calls as long as
  /// the configuration says, then closes what is left. A second call returns at once.
  public func shutdown() async {
    let first = state.withLock { done in
      defer { done = true }
      return !done
    }
    guard first else { return }
    for listener in listeners { listener.close() }
    for host in hosts { host.loop.execute { host.drain() } }
    let end = ContinuousClock.now + configuration.drainGrace
    while hosts.contains(where: { $0.connectionCount > 0 }), ContinuousClock.now < end {
      try? await Task.sleep(for: .milliseconds(5))
    }
    for host in hosts { host.loop.execute { host.closeAll() } }
    let hard = ContinuousClock.now + .seconds(1)
    while hosts.contains(where: { $0.connectionCount > 0 }), ContinuousClock.now < hard {
      try? await Task.sleep(for: .milliseconds(1))
    }
    group.shutdown()
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
/// `@unchecked Sendable`: `connections` is confined to the loop, everything else does not
/// change.
final class ServerHost: @unchecked Sendable {
  let loop: EventLoop
  let methods: MethodTable
  let receiveLimit: Int
  let handlerLimit: Int
  let pendingResponseLimit: Int
  let interceptors: [any ServerInterceptor]
  let observers: [any RPCObserver]
  /// Those of `observers` that want to hear of calls.
  let callObservers: [any RPCObserver]
  let compression: Compression?
  let connection: ConnectionConfiguration
  private var connections: [ObjectIdentifier: ServerConnection] = [:]
  private let count = Atomic<Int>(0)
  private var draining = false

  init(loop: EventLoop, methods: MethodTable, configuration: Server.Configuration) {
    self.loop = loop
    self.methods = methods
    receiveLimit = configuration.maxReceiveMessageBytes
    handlerLimit = configuration.maxHandlersPerConnection
    pendingResponseLimit = configuration.maxPendingResponseBytesPerConnection
    interceptors = configuration.interceptors
    observers = configuration.observers
    callObservers = observers.filter(\.observesCalls)
    compression = configuration.compression
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
