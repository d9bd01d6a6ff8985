import Synchronization
import VencejoHTTP2
import VencejoProtobuf

/// The health of a server and its services (gRPC "Health Checking Protocol").
///
/// Every service it is mounted with is SERVING until told otherwise; the empty name
/// stands for the server as a whole.
public final class Health: GRPCHealth.HealthService {
  public typealias Status = GRPCHealth.HealthCheckResponse.ServingStatus

  private struct State {
    var statuses: [String: Status] = ["": .serving]
    var watchers: [ObjectIdentifier: Watcher] = [:]
    /// The services it was last mounted with.
    var served: Set<String> = []

    /// nil forgets the service.
    mutating func change(_ service: String, _ status: Status?) {
      let before = statuses[service]
      statuses[service] = status
      guard before != status else { return }
      for watcher in watchers.values where watcher.service == service {
        watcher.tell(status ?? .serviceUnknown)
      }
    }
  }

  private let state = Mutex(State())

  public init() {}

  public var execution: HandlerExecution { .loop }

  public func mounted(with services: [any Service]) {
    let names = Set(services.flatMap(\.descriptors).map(\.fullName))
    state.withLock { state in
      for name in names where state.statuses[name] == nil { state.change(name, .serving) }
      for name in state.served.subtracting(names) { state.change(name, nil) }
      state.served = names
    }
  }

  /// Sets the status of one service, or of the server with the empty name.
  public func set(_ status: Status, for service: String = "") {
    state.withLock { $0.change(service, status) }
  }

  /// Sets every status: NOT_SERVING is what balancers should see while a server drains.
  public func setAll(_ status: Status) {
    for service in state.withLock({ Array($0.statuses.keys) }) { set(status, for: service) }
  }

  public func check(
    _ request: GRPCHealth.HealthCheckRequest, _ context: ServerContext
  ) async throws -> GRPCHealth.HealthCheckResponse {
    guard let status = state.withLock({ $0.statuses[request.service] }) else {
      throw RPCError(.notFound, "unknown service \(request.service)")
    }
    return .init(status: status)
  }

  public func list(
    _ request: GRPCHealth.HealthListRequest, _ context: ServerContext
  ) async throws -> GRPCHealth.HealthListResponse {
    .init(statuses: state.withLock { $0.statuses.mapValues { .init(status: $0) } })
  }

  public func watch(
    _ request: GRPCHealth.HealthCheckRequest,
    _ out: ResponseWriter<GRPCHealth.HealthCheckResponse>, _ context: ServerContext
  ) async throws {
    begin(request, context)
    // Until the call is over.
    let (nothing, end) = AsyncStream.makeStream(of: Never.self)
    for await _ in nothing {}
    withExtendedLifetime(end) {}
    throw RPCError(.cancelled, "the watch was cancelled")
  }

  /// A watch that rests has no task, unless somebody intercepts it: there may be many.
  public var methods: [ServerMethod] {
    let (health, path) = (self, "/\(Self.descriptor.fullName)")
    var watch = ServerMethod.serverStreaming("\(path)/Watch", self.watch)
    watch.attend = { context in
      do {
        health.begin(try ServerMethod.decode(context.call.takeRequest()), context)
      } catch {
        context.call.conclude(RPCError(handlerError: error))
      }
    }
    return [.unary("\(path)/Check", self.check), .unary("\(path)/List", self.list), watch]
  }

  /// On the call's loop.
  private func begin(_ request: GRPCHealth.HealthCheckRequest, _ context: ServerContext) {
    let watcher = Watcher(request.service, context.call) { [self] watcher in
      _ = state.withLock { $0.watchers.removeValue(forKey: ObjectIdentifier(watcher)) }
    }
    let status = state.withLock { state in
      state.watchers[ObjectIdentifier(watcher)] = watcher
      return state.statuses[request.service] ?? .serviceUnknown
    }
    context.call.attend(watcher)
    watcher.send(status)
  }
}

/// Sends a service's status to one call whenever it changes.
///
/// `@unchecked Sendable`: `unsent` is confined to the call's loop, the rest does not change.
private final class Watcher: CallAttendant, @unchecked Sendable {
  let service: String
  private let call: ServerCall
  private let onEnd: @Sendable (Watcher) -> Void
  /// A client that is behind wants the newest status only.
  private var unsent: Health.Status?

  init(
    _ service: String, _ call: ServerCall, onEnd: @escaping @Sendable (Watcher) -> Void
  ) {
    self.service = service
    self.call = call
    self.onEnd = onEnd
  }

  /// Any thread.
  func tell(_ status: Health.Status) { call.loop.execute { self.send(status) } }

  func send(_ status: Health.Status) {
    let message = EncodedMessage(GRPCHealth.HealthCheckResponse(status: status))
    unsent = call.tryRespond(message.frame, compressed: true) ? nil : status
  }

  override func drained(_ call: ServerCall) {
    if let unsent { send(unsent) }
  }

  override func ended(_ call: ServerCall) { onEnd(self) }
}
