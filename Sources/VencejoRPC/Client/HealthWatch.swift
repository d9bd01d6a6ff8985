import VencejoHTTP2
import VencejoProtobuf

/// Asks a server whether a service of its is well, for as long as the connection stands
/// (gRFC A17, "Client-Side Health Checking").
///
/// Confined to the channel's loop.
final class HealthWatch: StreamHandler {
  private enum State {
    case asking
    case serving
    case notServing(RPCError)
  }

  private let request: [UInt8]
  private let connection: HTTP2Connection
  private let core: ChannelCore
  private let changed: () -> Void
  private var state = State.asking
  private var head = ResponseHead()
  private var deframer = Deframer(limit: 64 * 1024)
  private var stream: HTTP2Stream?
  private var timer: LoopTimer?
  private var failures = 0
  private var hasAnswered = false

  init(
    _ service: String, on connection: HTTP2Connection, core: ChannelCore,
    changed: @escaping () -> Void
  ) {
    request = EncodedMessage(GRPCHealth.HealthCheckRequest(service: service)).frame
    self.connection = connection
    self.core = core
    self.changed = changed
  }

  var isServing: Bool { if case .serving = state { true } else { false } }

  var failure: RPCError? { if case .notServing(let error) = state { error } else { nil } }

  func begin() {
    head = ResponseHead()
    deframer = Deframer(limit: 64 * 1024)
    hasAnswered = false
    let headers = core.requestHeaders("/grpc.health.v1.Health/Watch")
    // A connection that takes no stream is going away, and this with it.
    stream = try? connection.open(handler: self, headers: headers, endStream: false)
    stream?.send(data: request)
    stream?.finish()
  }

  func cancel() {
    timer?.cancel()
    let stream = stream
    self.stream = nil
    stream?.reset(HTTP2Code.cancel)
  }

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    head.take(name, value)
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
    _ = head.endBlock(endStream: endStream)
  }

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    defer { stream.consume(data.count) }
    guard stream === self.stream else { return }
    var rest = data
    do throws(Deframer.Failure) {
      while let message = try deframer.next(&rest) { take(message) }
    } catch {
      stream.reset(HTTP2Code.cancel)
    }
  }

  private func take(_ message: [UInt8]) {
    guard let response = try? GRPCHealth.HealthCheckResponse(serializedBytes: message) else {
      stream?.reset(HTTP2Code.cancel)
      return
    }
    hasAnswered = true
    failures = 0
    become(
      response.status == .serving
        ? .serving
        : .notServing(
          RPCError(.unavailable, "the server says that it is not serving", origin: .transport)))
  }

  private func become(_ new: State) {
    state = new
    changed()
  }

  func streamDidEnd(_ stream: HTTP2Stream) {}
  func streamDidDrain(_ stream: HTTP2Stream) {}

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    guard stream === self.stream else { return }
    self.stream = nil
    guard !connection.isShuttingDown else { return }
    // A server without the service cannot say no.
    if head.outcome?.code == .unimplemented { return become(.serving) }
    become(
      .notServing(
        RPCError(.unavailable, "the server's health is not known", origin: .transport)))
    let delay: Duration = hasAnswered ? .zero : core.backoff(afterFailures: failures)
    failures += 1
    timer = core.loop.schedule(after: delay) { [weak self] in self?.begin() }
  }
}
