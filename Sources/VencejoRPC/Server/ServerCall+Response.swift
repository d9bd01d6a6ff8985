import Synchronization
import VencejoCompression
import VencejoHTTP2

/// Headers, metadata and status.
extension ServerCall {
  func replaceMetadata(_ metadata: Metadata) { head.metadata = metadata }

  var extras: Extra? {
    guard case .some(let extra)? = extra.withLock({ $0 }) else { return nil }
    return extra
  }

  func change(_ change: (inout Extra) -> Void) {
    extra.withLock { boxed in
      var extra = Extra()
      if case .some(let value)? = boxed { extra = value }
      change(&extra)
      boxed = .some(.some(extra))
    }
  }

  func setInitialMetadata(_ metadata: Metadata) {
    if !metadata.isEmpty || extras != nil { change { $0.initial = metadata } }
  }

  func setTrailingMetadata(_ metadata: Metadata) {
    if !metadata.isEmpty || extras != nil { change { $0.trailing = metadata } }
  }

  /// Compresses the messages from now on, if the client can read them and the headers have
  /// not gone.
  func setResponseCompression(_ compression: Compression?) {
    let possible = compression.flatMap { head.accepted.contains($0) ? $0 : nil }
    change { $0.compression = possible }
  }

  func compressed(_ frame: [UInt8]) -> [UInt8] {
    guard let compression = extras?.compression else { return frame }
    return frame.compressedFrame(compression)
  }

  func sendInitialMetadataSoon() {
    if loop.isCurrent {
      if phase != .done { _ = streamForMessages() }
    } else {
      loop.execute { if self.phase != .done { _ = self.streamForMessages() } }
    }
  }

  /// Sends the status, nil for OK, and ends the call for the handler too.
  func finish(_ error: RPCError?) {
    guard phase != .done else { return }
    if let tally { tally.end(error?.code ?? .ok, regularly: stream != nil) }
    if let stream {
      if error == nil, transforms == nil, extra.withLock({ $0 == nil }) {
        _ = streamForMessages()
        stream.send(trailers: ServerHeaders.statusOK)
      } else {
        sendStatus(error, on: stream)
      }
    }
    end()
  }

  func sendStatus(_ error: RPCError?, on stream: HTTP2Stream) {
    var error = error
    var extra = extras ?? Extra()
    if let transforms { extra.trailing = transforms.trailing(extra.trailing) }
    // A handler's mistake is answered, not hidden: the fields would be dropped or, worse,
    // spoil the block.
    if let problem = extra.initial.problem {
      error = RPCError(.internalError, problem)
      setInitialMetadata([:])
    } else if error == nil, let problem = extra.trailing.problem {
      error = RPCError(.internalError, problem)
    }
    if let error {
      let base = headersSent ? nil : ServerHeaders.response
      headersSent = true
      var fields = error.statusFields
      if error.code == .unimplemented, head.encoding != nil, deframer.compression == nil {
        fields.append(("grpc-accept-encoding", Compression.accepted))
      }
      stream.send(trailers: HeaderList(base: base, adding: fields))
    } else {
      _ = streamForMessages()
      stream.send(
        trailers: HeaderList(base: ServerHeaders.statusOK, adding: extra.trailing.fields))
    }
  }

  /// An HTTP status, for what is no gRPC request at all.
  func refuse(_ headers: HeaderList) {
    stream?.send(trailers: headers)
    end()
  }

  func answer(with page: RootPage) {
    if let stream {
      if head.isHead {
        stream.send(trailers: page.headers)
      } else {
        stream.send(headers: page.headers)
        stream.send(data: page.body)
        stream.finish()
      }
    }
    end()
  }
}
