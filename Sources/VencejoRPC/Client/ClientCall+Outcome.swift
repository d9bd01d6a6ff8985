import Synchronization

/// What callers on any thread wait for.
extension ClientCall {
  /// What readers on any thread wait for.
  struct Outcome {
    var initialMetadata: Metadata?
    /// Set at the end; the trailers, or the error.
    var end: Result<Metadata, RPCError>?
    var single: [UInt8]?
    var waiters: [UnsafeContinuation<Void, Never>] = []

    mutating func takeWaiters() -> [UnsafeContinuation<Void, Never>] {
      defer { waiters = [] }
      return waiters
    }
  }

  /// The one message of a unary or client-streaming call's response.
  func singleResponse() async throws(RPCError) -> [UInt8] {
    await waitForEnd()
    let (end, single) = outcome.withLock { ($0.end, $0.single) }
    switch end {
    case .failure(let error)?: throw error
    case .success?:
      if let single { return try transforms?.incoming(single) ?? single }
      throw RPCError(.unimplemented, "the server answered OK without a message")
    case nil: throw RPCError(.cancelled, "the calling task was cancelled")
    }
  }

  /// The metadata before the first message. Throws the call's error when there is none.
  func initialMetadata() async throws(RPCError) -> Metadata {
    await wait { $0.initialMetadata != nil || $0.end != nil }
    let (initial, end) = outcome.withLock { ($0.initialMetadata, $0.end) }
    if let initial { return initial }
    if case .failure(let error)? = end { throw error }
    if end == nil { throw RPCError(.cancelled, "the calling task was cancelled") }
    return [:]
  }

  /// The metadata after the last message; throws the call's error.
  func trailers() async throws(RPCError) -> Metadata {
    await waitForEnd()
    guard let end = outcome.withLock({ $0.end }) else {
      throw RPCError(.cancelled, "the calling task was cancelled")
    }
    return try end.get()
  }

  private func waitForEnd() async {
    await wait { $0.end != nil }
  }

  /// Returns when the condition holds, or once the task is cancelled and the call with it.
  private func wait(until holds: @Sendable (borrowing Outcome) -> Bool) async {
    await withTaskCancellationHandler {
      while !outcome.withLock({ holds($0) }) {
        await withUnsafeContinuation { continuation in
          let ready = outcome.withLock { state in
            if holds(state) { return true }
            state.waiters.append(continuation)
            return false
          }
          if ready { continuation.resume() }
        }
      }
    } onCancel: {
      cancel()
    }
  }
}
