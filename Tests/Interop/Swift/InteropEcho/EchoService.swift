import VencejoProtobuf
public import VencejoRPC

/// The Swift side of interop.proto's server.
public struct Echo: Interop.EchoService {
  private let holds = Holds()
  public let execution: HandlerExecution

  public init(execution: HandlerExecution = .pool) { self.execution = execution }

  public func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    mirrorMetadata(context)
    let answer = try await answer(to: request, index: 0, context)
    if let failure = request.failure { throw error(failure, context) }
    return answer
  }

  public func serverStream(
    _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
    _ context: ServerContext
  ) async throws {
    mirrorMetadata(context)
    var index: Int32 = 0
    try await answers(to: request, &index, out, context)
  }

  public func clientStream(
    _ requests: RequestStream<Interop.EchoRequest>, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    mirrorMetadata(context)
    var answer = Interop.EchoResponse()
    answer.deadlineMilliseconds = remaining(context)
    for try await request in requests {
      answer.payload = request.payload
      answer.requestCount += 1
      answer.requestBytes += Int64(request.payload.count)
      if let failure = request.failure { throw error(failure, context) }
    }
    return answer
  }

  public func bidirectional(
    _ requests: RequestStream<Interop.EchoRequest>, _ out: ResponseWriter<Interop.EchoResponse>,
    _ context: ServerContext
  ) async throws {
    mirrorMetadata(context)
    var index: Int32 = 0
    for try await request in requests { try await answers(to: request, &index, out, context) }
  }

  public func hold(
    _ request: Interop.HoldRequest, _ out: ResponseWriter<Interop.HoldResponse>,
    _ context: ServerContext
  ) async throws {
    holds.begin(request.key)
    // At the moment of cancellation, not when the handler gets around to it.
    try await withTaskCancellationHandler {
      try await out.send(.init(key: request.key))
      try await Task.sleep(for: .seconds(3_600))
    } onCancel: {
      holds.end(request.key)
    }
  }

  public func getHold(
    _ request: Interop.GetHoldRequest, _ context: ServerContext
  ) async throws -> Interop.GetHoldResponse {
    let hold = await holds.wait(
      for: request.key, limit: .milliseconds(request.waitMilliseconds))
    return .init(
      started: hold.started, cancelled: hold.ended != nil, cancelTimeMicros: hold.ended ?? 0)
  }

  private func answers(
    to request: Interop.EchoRequest, _ index: inout Int32,
    _ out: ResponseWriter<Interop.EchoResponse>, _ context: ServerContext
  ) async throws {
    let count = request.responseCount == 0 ? 1 : max(0, request.responseCount)
    for _ in 0..<count {
      try await out.send(answer(to: request, index: index, context))
      index &+= 1
    }
    if let failure = request.failure { throw error(failure, context) }
  }

  private func answer(
    to request: Interop.EchoRequest, index: Int32, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    if request.delayMilliseconds > 0 {
      // As the caller asked.
      try await Task.sleep(for: .milliseconds(request.delayMilliseconds))
    }
    let size = Int(min(max(request.responseBytes, 0), 64 << 20))
    return .init(
      payload: size > 0 ? [UInt8](repeating: 0x5A, count: size) : request.payload, index: index,
      deadlineMilliseconds: remaining(context))
  }

  private func remaining(_ context: ServerContext) -> Int64 {
    guard let deadline = context.deadline else { return -1 }
    let (seconds, attoseconds) = (deadline - .now).components
    return max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
  }

  private func mirrorMetadata(_ context: ServerContext) {
    context.sendInitialMetadata(entries(of: context, with: "x-initial-"))
    context.setTrailingMetadata(entries(of: context, with: "x-trailing-"))
  }

  private func entries(of context: ServerContext, with prefix: String) -> Metadata {
    var metadata = Metadata()
    for entry in context.metadata where entry.key.hasPrefix(prefix) {
      switch entry.value {
      case .text(let text): metadata.add(text, for: entry.key)
      case .bytes(let bytes): metadata.add(bytes, for: entry.key)
      }
    }
    return metadata
  }

  private func error(_ failure: Interop.Failure, _ context: ServerContext) -> RPCError {
    RPCError(
      StatusCode(rawValue: Int(failure.code)), failure.message, details: failure.details,
      metadata: entries(of: context, with: "x-trailing-"))
  }
}
