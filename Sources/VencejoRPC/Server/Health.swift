import Synchronization
import VencejoProtobuf

/// The health of a server and its services (gRPC "Health Checking Protocol").
///
/// Every service it is mounted with is SERVING until told otherwise; the empty name
/// stands for the server as a whole.
public final class Health: GRPCHealth.HealthService {
  public typealias Status = GRPCHealth.HealthCheckResponse.ServingStatus

  private struct State {
    var statuses: [String: Status] = ["": .serving]
    var watchers: [UInt64: (service: String, updates: AsyncStream<Status>.Continuation)] = [:]
    var lastWatcher: UInt64 = 0
    /// The services it was last mounted with.
    var served: Set<String> = []

    /// nil forgets the service.
    mutating func change(_ service: String, _ status: Status?) {
      let before = statuses[service]
      statuses[service] = status
      guard before != status else { return }
      for watcher in watchers.values where watcher.service == service {
        watcher.updates.yield(status ?? .serviceUnknown)
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
    // One slot: a watcher that is behind wants the newest status only.
    let (updates, continuation) = AsyncStream.makeStream(
      of: Status.self, bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.lastWatcher += 1
      state.watchers[state.lastWatcher] = (request.service, continuation)
      continuation.yield(state.statuses[request.service] ?? .serviceUnknown)
      return state.lastWatcher
    }
    defer { _ = state.withLock { $0.watchers.removeValue(forKey: id) } }
    for await status in updates { try await out.send(.init(status: status)) }
    throw RPCError(.cancelled, "the watch was cancelled")
  }
}
