import VencejoHTTP2
import VencejoProtobuf

/// From a request to its handler, and what comes of it.
extension ServerCall {
  /// False when that ended the call.
  func begin(_ entry: MethodTable.Entry) -> Bool {
    run(entry)
    return phase == .running
  }

  func run(_ entry: MethodTable.Entry) {
    guard connection.beginHandler() else {
      return refuse(
        RPCError(.resourceExhausted, "too many handlers of this connection are still running"))
    }
    if let error = beginLimited(entry) {
      connection.endHandler()
      return refuse(error)
    }
    phase = .running
    if let tally { tally.handled() }
    if !entry.isUnary { openBuffers() }
    if let attend = entry.method.attend, connection.host.interceptors.isEmpty {
      return attend(ServerContext(call: self))
    }
    guard let deadline else { return start(entry) }
    // What the task inherits need not lie in its frames.
    CallScope.$deadline.withValue(deadline) { start(entry) }
  }

  private func start(_ entry: MethodTable.Entry) {
    if entry.execution == .loop {
      let task = Task.immediate(executorPreference: loop) {
        // Not behind another asynchronous function: each costs two looks for an executor.
        do {
          if let streams = self.streams {
            try await streams.run(
              RequestStream(call: self), ResponseWriter(call: self), self.inTask())
            self.handlerReturned(nil)
          } else {
            self.handlerReturned(try await self.body(self.inTask()))
          }
        } catch {
          self.handlerFailed(error)
        }
      }
      if phase == .running { self.task = task }
    } else {
      task = Task {
        do {
          if let streams = self.streams {
            try await streams.run(
              RequestStream(call: self), ResponseWriter(call: self), self.inTask())
            self.handlerReturned(nil)
          } else {
            self.handlerReturned(try await self.body(self.inTask()))
          }
        } catch {
          self.handlerFailed(error)
        }
      }
    }
  }

  /// By the handler's task, once, before the handler.
  @inline(never)
  private func inTask() -> ServerContext {
    if buffers != nil { taskID = Self.currentTaskID }
    return ServerContext(call: self)
  }

  @inline(never)
  private var streams: StreamsBody<RawMessage, RawMessage>? {
    connection.host.interceptors.isEmpty ? entry?.method.streams : nil
  }

  @inline(never)
  private var body: @Sendable (ServerContext) async throws -> [UInt8]? {
    guard connection.host.interceptors.isEmpty, let entry else { return Self.intercepted }
    return entry.method.body
  }

  /// Where the current task lies; 0 outside of tasks.
  private static var currentTaskID: UInt {
    withUnsafeCurrentTask { $0.map { unsafeBitCast($0, to: UInt.self) } ?? 0 }
  }

  /// Any thread. Whether the handler's own task asks, none that it began.
  @inline(never)
  var isOwnTask: Bool { taskID != 0 && taskID == Self.currentTaskID }

  /// By the handler's task, once, before the handler.
  @inline(never)
  func takeRequest() -> [UInt8] {
    defer { request = nil }
    return request ?? []
  }

  // What follows a handler lies outside of the function that waits for it: its frame is a part
  // of each idle stream.

  @inline(never)
  func handlerReturned(_ frame: [UInt8]?) { handlerEndedSoon(.success(frame)) }

  @inline(never)
  func handlerFailed(_ error: any Error) {
    handlerEndedSoon(.failure(RPCError(handlerError: error)))
  }

  func handlerEndedSoon(_ outcome: Result<[UInt8]?, RPCError>) {
    if loop.isCurrent { handlerEnded(outcome) } else { loop.execute { self.handlerEnded(outcome) } }
  }

  /// For calls beyond a limit: with a status, or unseen, so that the client tries elsewhere.
  func refuse(_ error: RPCError) {
    guard connection.host.refusesBeyondLimits, let stream else { return finish(error) }
    if let tally { tally.end(error.code) }
    stream.reset(HTTP2Code.refusedStream)
    end()
  }

  /// Runs interceptors and handler. A sealed frame to send, or nothing.
  @Sendable
  private static func intercepted(_ context: ServerContext) async throws -> [UInt8]? {
    try await context.call.intercepted()
  }

  private func intercepted() async throws -> [UInt8]? {
    guard let method = entry?.method else { return nil }
    let transforms = MessageTransforms()
    self.transforms = transforms
    let answer = Answer()
    let chain = ServerChain(self, connection.host.interceptors, transforms) {
      if method.takesOneRequest { self.request = try transforms.incoming(self.takeRequest()) }
      answer.frame = try await method.body(ServerContext(call: self))
    }
    try await chain.proceed(from: 0)
    return try answer.frame.map { frame throws(RPCError) in try transforms.outgoing(frame) }
  }

  /// The handler's frame on its way out of the chain.
  ///
  /// `@unchecked Sendable`: written in the chain and read after it, by one task.
  private final class Answer: @unchecked Sendable {
    var frame: [UInt8]?
  }

  /// A message of a request stream, as the interceptors let it pass.
  func passed(_ message: Received) throws(RPCError) -> [UInt8] {
    try transforms?.incoming(message.bytes) ?? message.bytes
  }

  /// Sends a sealed frame, as the interceptors let it pass.
  func respond(_ frame: [UInt8], compressed isCompressed: Bool) async throws(RPCError) {
    let frame = try transforms?.outgoing(frame) ?? frame
    if let refusal = sizeRefusal(frame) { throw refusal }
    try await send(frame: isCompressed ? compressed(frame) : frame)
  }

  func tryRespond(_ frame: [UInt8], compressed isCompressed: Bool) -> Bool {
    var frame = frame
    if let transforms {
      guard let changed = try? transforms.outgoing(frame) else { return false }
      frame = changed
    }
    guard sizeRefusal(frame) == nil else { return false }
    return trySend(frame: isCompressed ? compressed(frame) : frame)
  }

  func leaveLimits() {
    connection.endHandler()
    connection.host.limit?.end()
    entry?.limit?.end()
  }

  func handlerEnded(_ outcome: Result<[UInt8]?, RPCError>) {
    leaveLimits()
    task = nil
    dismissAttendant()
    guard phase != .done else { return }
    switch outcome {
    case .success(let frame):
      if let frame {
        if let refusal = sizeRefusal(frame) { return finish(refusal) }
        let frame = compressed(frame)
        guard connection.beginResponse(frame.count) else {
          return finish(
            RPCError(.resourceExhausted, "too many responses wait for the client to read them"))
        }
        pendingBytes = frame.count
        guard let stream = streamForMessages() else { return end() }
        put(frame, on: stream)
      } else {
        flush()
      }
      finish(nil)
    case .failure(let error):
      flush()
      finish(error)
    }
  }

  // MARK: Calls without a task

  /// Loop. Tells the attendant what happens to the call. Where there is no handler either, the
  /// call lasts until the client ends it.
  func attend(_ attendant: CallAttendant) {
    guard phase == .running else { return attendant.ended(self) }
    self.attendant = attendant
  }

  /// Loop. Ends a call that has no handler and no attendant.
  func conclude(_ error: RPCError) {
    leaveLimits()
    finish(error)
  }

  func dismissAttendant() {
    guard let attendant else { return }
    self.attendant = nil
    attendant.ended(self)
  }
}

/// Sends a call's messages in the place of its handler, or beside it: a call at rest needs no
/// task then. On the call's loop.
///
/// `@unchecked Sendable`: only the loop's thread touches it.
class CallAttendant: @unchecked Sendable {
  /// The client has caught up.
  func drained(_ call: ServerCall) {}
  /// The call is over.
  func ended(_ call: ServerCall) {}
}
