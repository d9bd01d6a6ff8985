import Synchronization
import VencejoHTTP2

/// Between a call and its caller: interceptors and credentials.
extension ClientCall {
  /// Holds back the call's end until the interceptors have seen it.
  struct Gate {
    var end: Result<Void, RPCError>?
    var waiter: UnsafeContinuation<Result<Void, RPCError>, Never>?
    var task: Task<Void, Never>?
    /// The interceptors have set their transforms: messages may pass, or the call is over.
    var isPassable = false
    var senders: [UnsafeContinuation<Void, Never>] = []
  }

  func proceed(from level: Int) async throws {
    guard level < core.interceptors.count else {
      if let frame = request, let transforms { request = try transforms.outgoing(frame) }
      if let credentials = options.credentials ?? core.configuration.credentials {
        options.metadata.append(contentsOf: try await authorization(credentials))
        hasCredentials = true
      }
      letSendersPass()
      beginSoon()
      return try await waitAtGate().get()
    }
    try await core.interceptors[level].intercept(ClientInterception(call: self, level: level + 1))
  }

  private func authorization(
    _ credentials: CallOptions.Credentials
  ) async throws -> Metadata {
    do {
      return try await credentials(path, core.audience(path))
    } catch let error as RPCError {
      // gRFC A54: statuses that speak of the request are the server's alone.
      let isOfTheRequest: Set<StatusCode> = [
        .ok, .invalidArgument, .notFound, .alreadyExists, .failedPrecondition, .aborted,
        .outOfRange, .dataLoss,
      ]
      guard isOfTheRequest.contains(error.code) else { throw error }
      throw RPCError(.internalError, "the credentials failed with \(error)")
    } catch is CancellationError {
      throw RPCError(.cancelled, "the call was cancelled")
    } catch {
      throw RPCError(.unavailable, "the credentials failed: \(error)")
    }
  }

  private func waitAtGate() async -> Result<Void, RPCError> {
    await withUnsafeContinuation { continuation in
      let end = gate.withLock { gate -> Result<Void, RPCError>? in
        if gate.end == nil { gate.waiter = continuation }
        return gate.end
      }
      if let end { continuation.resume(returning: end) }
    }
  }

  func openGate(_ end: Result<Void, RPCError>) {
    let waiter = gate.withLock { gate in
      gate.end = end
      defer { gate.waiter = nil }
      return gate.waiter
    }
    waiter?.resume(returning: end)
  }

  /// The chain has ended, with or without a call: an interceptor may answer by itself.
  func concludeSoon(_ error: RPCError?) {
    loop.execute {
      if !self.isOver {
        self.abandon(
          error ?? RPCError(.internalError, "an interceptor ended without proceeding"))
      }
      self.conclude(error)
    }
  }

  /// The next response message, as the interceptors let it pass.
  func nextResponse() async throws(RPCError) -> Received? {
    guard var message = try await nextMessage() else { return nil }
    if let transforms { message.bytes = try transforms.incoming(message.bytes) }
    return message
  }

  /// Sends a sealed frame, as the interceptors let it pass.
  func request(_ frame: [UInt8], compressed isCompressed: Bool) async throws(RPCError) {
    guard let transforms else {
      return try await send(frame: isCompressed ? compressed(frame) : frame)
    }
    await withUnsafeContinuation { continuation in
      let passable = gate.withLock { gate in
        if !gate.isPassable { gate.senders.append(continuation) }
        return gate.isPassable
      }
      if passable { continuation.resume() }
    }
    let frame = try transforms.outgoing(frame)
    try await send(frame: isCompressed ? compressed(frame) : frame)
  }

  func letSendersPass() {
    let senders = gate.withLock { gate in
      gate.isPassable = true
      defer { gate.senders = [] }
      return gate.senders
    }
    for sender in senders { sender.resume() }
  }
}
