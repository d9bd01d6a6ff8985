import Synchronization
public import VencejoCompression
public import VencejoHTTP2
public import VencejoProtobuf

/// The way to a server: connects when the first call needs it, again when the connection
/// was lost, and carries any number of calls at a time.
public final class Channel: Sendable {
  public struct Configuration: Sendable {
    public var connection = ConnectionConfiguration()
    public var backoff = Backoff()
    public var userAgent = "grpc-swift-vencejo/\(VencejoRPC.version)"

    /// Compresses the requests of calls that do not say otherwise.
    public var compression: Compression?
    /// The `:authority` of requests, and, where `ClientTLS.serverName` is nil, whom the server's
    /// certificate must be for; nil takes it from `ClientTLS.serverName` or the target.
    public var authority: String?
    /// For calls that do not say otherwise; nil makes none again.
    public var retryPolicy: RetryPolicy?
    /// How calls are treated, method by method: gRPC's service config in its JSON form. One
    /// that the resolver finds takes its place.
    public var serviceConfig: String?
    /// Says on whose behalf calls are made, where they do not say so themselves.
    public var credentials: CallOptions.Credentials?
    /// Connections to one address, of which the second and later are made when the server takes
    /// no more streams on those there are.
    public var maxConnectionsPerAddress = 1
    /// A channel without calls for so long lets its connections go until the next one; nil
    /// never.
    public var idleTimeout: Duration? = .seconds(30 * 60)
    /// See every call, the first one outermost. None costs nothing.
    public var interceptors: [any ClientInterceptor] = []

    // For tests.
    package var attemptDelay: Duration = .milliseconds(250)
    package var resolutionInterval: Duration = .seconds(30)
    package var random: @Sendable () -> Double = { Double.random(in: 0...1) }
    /// Are told of every call, attempt and connection. None costs nothing.
    public var observers: [any RPCObserver] = []

    public init() {}
  }

  private let target: Target
  private let tls: ClientTLS?
  private let configuration: Configuration
  private let serviceConfig: Result<ServiceConfig?, RPCError>
  private let started = Mutex<ChannelCore?>(nil)
  /// Nil when nobody looks.
  private let channelz: ChannelzEntry?

  /// A channel to `host:port`, `dns:///host:port`, `ipv4:…`, `ipv6:…` (both with several
  /// addresses, separated by commas), `unix:/path` or `unix-abstract:name`; in plain text
  /// without `tls`.
  ///
  /// Throws INVALID_ARGUMENT when the target is none of these, a certificate of `tls` cannot
  /// be used, or the service config is not valid. Nothing is connected yet.
  public convenience init(
    _ target: String, tls: ClientTLS? = nil, configuration: Configuration = .init()
  ) throws(RPCError) {
    try self.init(target: Target(target), tls: tls, configuration: configuration)
  }

  /// A channel to the first of these addresses that answers, or, by its service config, to all
  /// of them in turn. `authority` is the name that certificates are for.
  ///
  /// Throws as above.
  public convenience init(
    addresses: [SocketAddress], authority: String = "localhost", tls: ClientTLS? = nil,
    configuration: Configuration = .init()
  ) throws(RPCError) {
    let target = Target(
      .known(addresses), authority: authority,
      description: addresses.map { "\($0)" }.joined(separator: ","))
    try self.init(target: target, tls: tls, configuration: configuration)
  }

  /// A channel to the addresses that the resolver finds. `authority` is the name that
  /// certificates are for.
  ///
  /// Throws as above.
  public convenience init(
    resolver: any Resolver, authority: String, tls: ClientTLS? = nil,
    configuration: Configuration = .init()
  ) throws(RPCError) {
    let target = Target(.resolved(resolver), authority: authority, description: authority)
    try self.init(target: target, tls: tls, configuration: configuration)
  }

  private init(
    target: Target, tls: ClientTLS?, configuration: Configuration
  ) throws(RPCError) {
    var target = target
    var tls = tls
    if let authority = configuration.authority ?? tls?.serverName { target.authority = authority }
    if tls?.serverName == nil { tls?.serverName = target.host }
    do throws(HTTP2Error) {
      try tls?.check()
    } catch {
      throw RPCError(.invalidArgument, error.message)
    }
    serviceConfig = .success(try configuration.serviceConfig.map(ServiceConfig.init(json:)))
    self.target = target
    self.tls = tls
    self.configuration = configuration
    channelz =
      ChannelzRegistry.isEnabled ? ChannelzEntry(.channel, target.description) : nil
  }

  /// In process. A service config that is not valid fails the calls.
  init(_ addresses: Target.Addresses, configuration: Configuration) {
    do throws(RPCError) {
      serviceConfig = .success(try configuration.serviceConfig.map(ServiceConfig.init(json:)))
    } catch {
      serviceConfig = .failure(error)
    }
    target = Target(addresses)
    tls = nil
    self.configuration = configuration
    channelz =
      ChannelzRegistry.isEnabled ? ChannelzEntry(.channel, target.description) : nil
  }

  deinit {
    guard let core = started.withLock({ $0 }) else { return }
    Self.stop(core)
  }

  /// Fails the calls under way with UNAVAILABLE and closes the connection.
  public func close() {
    guard let core = started.withLock({ $0 }) else { return }
    core.loop.execute { core.close() }
  }

  private static func stop(_ core: ChannelCore) {
    core.loop.execute { core.close() }
    core.loop.shutdown()
  }

  private func core() throws(RPCError) -> ChannelCore {
    let config = try serviceConfig.get()
    let core = started.withLock { core -> ChannelCore? in
      if let core { return core }
      guard let loop = try? EventLoop(name: "channel") else { return nil }
      core = ChannelCore(
        loop: loop, target: target, tls: tls, configuration: configuration, config: config,
        channelz: channelz)
      return core
    }
    guard let core else {
      throw RPCError(.resourceExhausted, "the system gives no more threads or descriptors")
    }
    return core
  }

  // MARK: Calls

  /// A call of one message each way.
  public func unary<Request: Message, Response: Message>(
    _ path: String, _ request: Request, _ options: CallOptions = .init()
  ) async throws(RPCError) -> Response {
    // A channel that goes away fails its calls; this one is still needed.
    defer { withExtendedLifetime(self) {} }
    let call = ClientCall(
      path, options, core: try core(), request: EncodedMessage(request).frame, expectsOne: true,
      requestTypeName: Request.messageName)
    call.start()
    return try Self.decode(await call.singleResponse())
  }

  public func serverStreaming<Request: Message, Response: Message>(
    _ path: String, _ request: Request, _ options: CallOptions = .init()
  ) -> ServerStreamingCall<Response> {
    ServerStreamingCall(
      handle(
        path, options, EncodedMessage(request).frame, expectsOne: false, type: Request.messageName))
  }

  public func clientStreaming<Request: Message, Response: Message>(
    _ path: String, _ options: CallOptions = .init()
  ) -> ClientStreamingCall<Request, Response> {
    ClientStreamingCall(handle(path, options, nil, expectsOne: true, type: Request.messageName))
  }

  public func bidirectional<Request: Message, Response: Message>(
    _ path: String, _ options: CallOptions = .init()
  ) -> BidirectionalCall<Request, Response> {
    BidirectionalCall(handle(path, options, nil, expectsOne: false, type: Request.messageName))
  }

  /// A call on bytes, for proxies and tools that know messages by descriptor only.
  public func bytes(_ path: String, _ options: CallOptions = .init()) -> BytesCall {
    BytesCall(handle(path, options, nil, expectsOne: false, type: ""))
  }

  private func handle(
    _ path: String, _ options: CallOptions, _ request: [UInt8]?, expectsOne: Bool,
    type: String
  ) -> CallHandle {
    do {
      let call = ClientCall(
        path, options, core: try core(), request: request, expectsOne: expectsOne,
        requestTypeName: type)
      call.start()
      return CallHandle(.success(call), channel: self)
    } catch {
      return CallHandle(.failure(error), channel: self)
    }
  }

  static func decode<Response: Message>(_ bytes: [UInt8]) throws(RPCError) -> Response {
    do {
      return try Response(serializedBytes: bytes)
    } catch {
      throw RPCError(.internalError, "the response is no \(Response.messageName): \(error)")
    }
  }
}

/// What generated client structs are.
public protocol ServiceClient: Sendable {
  init(_ channel: Channel)
  var channel: Channel { get }
}
