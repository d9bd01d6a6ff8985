import Synchronization
import VencejoCompression
import VencejoHTTP2

/// One call on the server: the stream's events in, a handler's task, a status out.
///
/// Loop-confined but for what `CallCore` guards, the mutex here, and the request's head,
/// which does not change once the handler runs.
final class ServerCall: CallCore, StreamHandler, @unchecked Sendable {
  enum Phase {
    /// Fields and, for one request message, its bytes are coming.
    case receiving
    /// The handler runs.
    case running
    /// The status is sent, or the stream is gone.
    case done
  }

  struct Extra {
    var initial = Metadata()
    var trailing = Metadata()
    var compression: Compression?

    /// Few calls have any of it.
    indirect enum Boxed { case some(Extra) }
  }

  // An idle stream is this and little else: what few calls have is kept behind one pointer.
  let connection: ServerConnection
  var head = RequestHead()
  var request: [UInt8]?
  /// Nanoseconds since `epoch`; 0 without a deadline. Set before the handler runs.
  var deadlineOffset: Int64 = 0
  var timer: LoopTimer?
  var task: Task<Void, Never>?
  /// The same, as the task itself knows it: written by it before the handler, and read by it and
  /// what the handler begins.
  var taskID: UInt = 0
  /// Stands in for a handler.
  var attendant: CallAttendant?
  let extra = Mutex<Extra.Boxed?>(nil)
  /// Set before interceptors and handler run, nil where there are no interceptors.
  var transforms: MessageTransforms?
  /// Of the response, until its stream is closed.
  var pendingBytes = 0
  var phase = Phase.receiving
  var headComplete = false
  var headersSent = false
  var asksForPage = false
  /// Set before the handler runs.
  private(set) var requestWasCompressed = false

  static let epoch = ContinuousClock.now

  init(connection: ServerConnection) {
    self.connection = connection
    super.init(loop: connection.http2.loop, receiveLimit: connection.host.receiveLimit)
  }

  var entry: MethodTable.Entry? { head.entry }
  var path: String { head.path }
  var requestTypeName: String { entry?.method.requestTypeName ?? "" }
  var metadata: Metadata { head.metadata }
  var userAgent: String? { head.hasUsualAgent ? connection.usualAgent : head.unusualAgent }
  var peer: SocketAddress { connection.http2.peerAddress }
  var deadline: ContinuousClock.Instant? {
    deadlineOffset == 0 ? nil : Self.epoch + .nanoseconds(deadlineOffset)
  }
  var peerCredentials: PeerCredentials? { connection.http2.peerCredentials }
  var peerIdentity: PeerIdentity? { connection.http2.peerIdentity }

  // MARK: The request's head

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    // Trailers of a request mean nothing to gRPC.
    if !headComplete { head.take(name, value, connection) }
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
    guard !headComplete else { return }
    headComplete = true
    if stream.headerListOverflowed {
      return finish(RPCError(.resourceExhausted, "the metadata is larger than the server takes"))
    }
    if head.asksForPage, connection.host.page != nil {
      asksForPage = true
      return
    }
    guard head.isPost else { return refuse(Self.methodNotAllowed) }
    guard head.hasGRPCContentType else { return refuse(Self.unsupportedMediaType) }
    if connection.host.isObserved {
      let tally = CallTally(
        connection.host.callObservers, method: path, isRegistered: head.isKnown, target: "",
        counts: connection.host.channelz?.calls)
      tally.opened(on: connection.http2)
      self.tally = tally
    }
    if let fault = head.fault { return finish(fault) }
    let timeout = head.timeout
    if timeout >= 0 {
      // Some clients send what is left although nothing is.
      guard timeout > 0 else {
        return finish(RPCError(.deadlineExceeded, "the deadline had passed when the call came"))
      }
      startDeadline(timeout)
    }
    if let encoding = head.encoding { deframer.compression = Compression(rawValue: encoding) }
    if let compression = connection.host.compression { setResponseCompression(compression) }
    guard let entry else { return finish(.unimplemented(path)) }
    guard !entry.takesOneRequest, phase == .receiving else { return }
    if !entry.awaitsMessage || !head.metadata.isEmpty { run(entry) }
  }

  func startDeadline(_ nanoseconds: Int64) {
    guard nanoseconds < .max else { return }
    let (offset, overflow) = (.now - Self.epoch).nanoseconds
      .addingReportingOverflow(nanoseconds)
    guard !overflow else { return }
    deadlineOffset = max(offset, 1)
    // It holds the call until then, or until `end` cancels it; a weak reference would cost each
    // call with a deadline an allocation.
    timer = loop.schedule(after: .nanoseconds(nanoseconds)) { [self] in
      finish(RPCError(.deadlineExceeded, "the deadline passed before the handler answered"))
    }
  }

  // MARK: The request's messages

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    guard phase != .done, !asksForPage, let entry else {
      // Answered already, or about to be: what still comes is let through and dropped.
      return stream.consume(data.count)
    }
    if !entry.takesOneRequest, phase == .receiving, !begin(entry) {
      return stream.consume(data.count)
    }
    if let tally { tally.received(data.count) }
    var rest = data
    do {
      while let message = try deframer.next(&rest) {
        if let tally { tally.receivedMessage() }
        guard entry.takesOneRequest else {
          deliver(message)
          continue
        }
        guard request == nil else {
          return finish(RPCError(.unimplemented, "more than one request message"))
        }
        request = message
        requestWasCompressed = deframer.isCompressed
      }
    } catch {
      return finish(
        error.status(limit: deframer.limit, encoding: head.encoding, inResponse: false))
    }
    if entry.takesOneRequest {
      stream.consume(data.count)
    } else {
      received(data.count)
    }
  }

  func streamDidEnd(_ stream: HTTP2Stream) {
    guard phase != .done else { return }
    if asksForPage, let page = connection.host.page { return answer(with: page) }
    guard let entry else { return }
    if deframer.isInside {
      return finish(RPCError(.internalError, "the request ends inside a message"))
    }
    if entry.takesOneRequest {
      guard request != nil else {
        return finish(RPCError(.unimplemented, "no request message"))
      }
      run(entry)
    } else if phase == .running || begin(entry) {
      endMessages(nil, dropping: false)
    }
  }

  func streamDidDrain(_ stream: HTTP2Stream) {
    drained()
    attendant?.drained(self)
  }

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    self.stream = nil
    connection.endResponse(pendingBytes)
    pendingBytes = 0
    end()
  }

  /// Loop. Response headers go before the first message.
  override func streamForMessages() -> HTTP2Stream? {
    guard let stream else { return nil }
    if !headersSent {
      let extra = extras
      var initial = extra?.initial ?? Metadata()
      if let transforms { initial = transforms.initial(initial) }
      if let problem = initial.problem {
        finish(RPCError(.internalError, problem))
        return nil
      }
      headersSent = true
      var fields = initial.fields
      if let compression = extra?.compression {
        fields.insert(("grpc-encoding", compression.rawValue), at: 0)
      }
      stream.send(
        headers: fields.isEmpty
          ? ServerHeaders.response : HeaderList(base: ServerHeaders.response, adding: fields))
    }
    return stream
  }

  func end() {
    guard phase != .done else { return }
    phase = .done
    // Without a status: the client is gone.
    if let tally { tally.end(.cancelled) }
    timer?.cancel()
    timer = nil
    if let task {
      task.cancel()
      self.task = nil
    } else if attendant != nil {
      leaveLimits()
    }
    dismissAttendant()
    // Nobody reads or writes messages beside a unary handler's arguments and result.
    guard let entry, !entry.isUnary else { return }
    let over = RPCError(.cancelled, "the call is over")
    endMessages(over, dropping: true)
    closeSending(over)
  }

  static let methodNotAllowed = HeaderList([(":status", "405"), ("allow", "POST")])
  static let unsupportedMediaType = HeaderList([(":status", "415")])
}

enum ServerHeaders {
  static let response = HeaderList([
    (":status", "200"), ("content-type", "application/grpc"),
  ])
  static let statusOK = HeaderList([("grpc-status", "0")])
}
