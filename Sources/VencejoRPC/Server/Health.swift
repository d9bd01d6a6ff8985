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
  }

  private let state = Mutex(State())

  public init() {}

  public var execution: HandlerExecution { .loop }

  public func mounted(with services: [any Service]) {
    state.withLock { state in
      for descriptor in services.flatMap(\.descriptors) {
        if state.statuses[descriptor.fullName] == nil {
          state.statuses[descriptor.fullName] = .serving
        }
      }
    }
  }

  /// Sets the status of one service, or of the server with the empty name.
  public func set(_ status: Status, for service: String = "") {
    state.withLock { state in
      guard state.statuses.updateValue(status, forKey: service) != status else { return }
      for watcher in state.watchers.values where watcher.service == service {
        watcher.updates.yield(status)
      }
    }
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
