import Synchronization
import VencejoDescriptors
import VencejoHTTP2
import VencejoJSON
import VencejoProtobuf
import VencejoRPC
import VencejoText

/// One call of `vencejo call`, with its answers on the way to standard output.
struct CallRun {
  private let address: String
  private let target: (service: String, name: String)
  private let arguments: ArgumentList
  private let options: CallOptions
  private let form: MessageForm
  private let json: JSONOptions
  private let isVerbose: Bool
  private let isQuiet: Bool
  private let output: Output
  private let meter = CallMeter()

  init(
    _ words: (address: String, method: String), _ arguments: ArgumentList, _ output: Output
  ) throws(ArgumentList.Fault) {
    address = words.address
    guard let target = DescribedMethod.split(words.method) else {
      throw ArgumentList.Fault("'\(words.method)' is no method: write package.Service/Method")
    }
    self.target = target
    self.arguments = arguments
    self.output = output
    options = try CallCommand.callOptions(arguments)
    form = try CallCommand.form(arguments)
    var json = JSONOptions()
    json.defaults = arguments.has("defaults")
    json.originalNames = arguments.has("original-names")
    json.pretty = arguments.has("pretty")
    self.json = json
    isVerbose = arguments.has("verbose")
    isQuiet = arguments.has("quiet")
  }

  func run() async throws -> Int32 {
    let (source, reflecting) = try Connecting.types(address, arguments)
    defer { reflecting?.close() }
    let method = try await DescribedMethod.find(target.service, target.name, in: source)
    try await TypesOut.write([target.service], of: source, arguments)
    let types = PackedTypes(source, method.output.pool)
    let requests = try await Requests(
      arguments["data"], for: method, form: form, types: PackedTypes(source, method.input.pool),
      ignoresUnknown: arguments.has("allow-unknown-fields"))
    // A channel of its own, so that what is measured is the call's.
    let channel = try Connecting.channel(address, arguments, observers: isVerbose ? [meter] : [])
    defer { channel.close() }
    if isVerbose {
      output.complain(VisibleText.clean("method: \(method.declaration)"))
      show(options.metadata, "request metadata")
    }
    let start = ContinuousClock.now
    let call = channel.bytes(method.path, options)
    let sending = Task { () -> (fault: ArgumentList.Fault?, bytes: Int) in
      var requests = requests
      var bytes = 0
      do throws(ArgumentList.Fault) {
        while let request = try await requests.next() {
          // Its error is the call's, and told by who reads the answers.
          do { try await call.send(EncodedMessage(serialized: request)) } catch { break }
          bytes += request.count
        }
      } catch {
        call.cancel()
        return (error, bytes)
      }
      call.finish()
      return (nil, bytes)
    }
    defer { sending.cancel() }
    var timing = Timing(start: start)
    let ending = await receive(call, method, types, &timing)
    timing.end = .now
    if isVerbose { await tell(sending, timing, ended: ending == nil) }
    guard let error = ending else { return ExitCode.ok }
    if error.code == .cancelled, error.origin == .local, let fault = await sending.value.fault {
      throw fault
    }
    if !isQuiet { await show(error, types) }
    return ExitCode.status(error.code)
  }

  private struct Timing {
    let start: ContinuousClock.Instant
    var headers: ContinuousClock.Instant?
    var first: ContinuousClock.Instant?
    var end: ContinuousClock.Instant?
    var received = 0
  }

  private func receive(
    _ call: BytesCall, _ method: DescribedMethod, _ types: PackedTypes, _ timing: inout Timing
  ) async -> RPCError? {
    do {
      if isVerbose {
        show(try await call.initialMetadata, "initial metadata")
        timing.headers = .now
      }
      var index = 0
      while let bytes = try await call.next() {
        timing.first = timing.first ?? .now
        timing.received += bytes.count
        index += 1
        if isVerbose { output.complain("answer \(index): \(bytes.count) bytes") }
        if !isQuiet { try await show(bytes, method.output, types, isFirst: index == 1) }
      }
      let trailers = try await call.trailers
      if isVerbose { show(trailers, "trailers") }
      return nil
    } catch {
      let error = error as? RPCError ?? RPCError(.internalError, "\(error)")
      if isVerbose { show(error.metadata, "trailers") }
      return error
    }
  }

  private func show(
    _ bytes: [UInt8], _ type: MessageDescriptor, _ types: PackedTypes, isFirst: Bool
  ) async throws {
    var shown: String
    switch form {
    case .json: shown = try await types.json(bytes, as: type, json) + "\n"
    case .text:
      // Only to learn of what is packed: text can express more than JSON.
      _ = try? await types.json(bytes, as: type, json)
      var text = TextOptions()
      text.types = types.pool
      shown = try TextFormat.encode(wire: bytes, as: type, text)
      if !isFirst { shown = "\u{1e}" + shown }
    }
    guard let path = arguments["output"] else { return output.out(shown) }
    try ProtoFiles.write(Array(shown.utf8), to: path, appending: !isFirst)
  }

  private func show(_ error: RPCError, _ types: PackedTypes) async {
    for detail in error.details { await types.learn([PackedTypes.name(detail.typeUrl)]) }
    guard arguments.has("format-error") else {
      ErrorPrinter(output: output, types: types.pool).print(error)
      return
    }
    output.complain(ErrorPrinter.status(error, types.pool, form))
  }

  private func show(_ metadata: Metadata, _ title: String) {
    output.complain("\(title):" + (metadata.isEmpty ? " none" : ""))
    for entry in metadata {
      switch entry.value {
      case .text(let text): output.complain(VisibleText.clean("  \(entry.key): \(text)"))
      case .bytes(let bytes):
        output.complain("  \(entry.key): \(Connecting.base64(bytes)) (\(bytes.count) bytes)")
      }
    }
  }

  private func tell(
    _ sending: Task<(fault: ArgumentList.Fault?, bytes: Int), Never>, _ timing: Timing,
    ended: Bool
  ) async {
    let attempt = meter.attempt
    // After an early end the sender may still wait for standard input.
    let sent = ended || !arguments.has("data") ? await sending.value.bytes : attempt?.sentBytes ?? 0
    output.complain(
      "sent: \(attempt?.sentMessages ?? 0) messages, \(sent) bytes, "
        + "\(attempt?.sentBytes ?? 0) on the wire")
    output.complain(
      "received: \(attempt?.receivedMessages ?? 0) messages, \(timing.received) bytes, "
        + "\(attempt?.receivedBytes ?? 0) on the wire")
    func since(_ moment: ContinuousClock.Instant?) -> String {
      guard let moment else { return "-" }
      let milliseconds = (moment - timing.start) / .milliseconds(1)
      return "\((milliseconds * 100).rounded() / 100) ms"
    }
    output.complain(
      "time: connected \(since(meter.connected)), headers \(since(timing.headers)), "
        + "first answer \(since(timing.first)), end \(since(timing.end))")
  }
}

/// Remembers what a channel tells of its one call.
private final class CallMeter: RPCObserver {
  private let state = Mutex<(attempt: CallReport?, connected: ContinuousClock.Instant?)>((nil, nil))

  var attempt: CallReport? { state.withLock { $0.attempt } }
  var connected: ContinuousClock.Instant? { state.withLock { $0.connected } }

  func attemptEnded(_ call: CallReport) { state.withLock { $0.attempt = call } }
  func connectionBegan(_ peer: SocketAddress) {
    state.withLock { $0.connected = $0.connected ?? .now }
  }
}
