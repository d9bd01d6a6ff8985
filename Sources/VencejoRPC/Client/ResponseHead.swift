/// What the fields of a response say, before and after its messages (gRPC over HTTP2,
/// "Responses").
struct ResponseHead {
  /// What the end of a block of fields means.
  enum Event {
    /// The messages may follow.
    case initial(Metadata)
    /// The response is none of gRPC's.
    case fault(RPCError)
  }

  private var httpStatus: Int?
  private var hasGRPCContentType = false
  private var status = StatusParser()
  /// The messages' encoding.
  private(set) var encoding: String?
  private var block = Metadata()
  /// The metadata after the messages.
  private(set) var trailing = Metadata()
  /// What the server says of another attempt, in milliseconds; negative asks for none (gRFC
  /// A6, "Pushback").
  private(set) var retryPushback: Int64?
  /// Whether the server has answered anything.
  private(set) var hasBegun = false

  mutating func take(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    guard let first = name.first else { return }
    if first == UInt8(ascii: ":") {
      if name.equals(":status") { httpStatus = Int(String(decoding: value, as: UTF8.self)) }
    } else if name.equals("content-type") {
      hasGRPCContentType = value.starts(with: "application/grpc".utf8)
    } else if name.starts(with: "grpc-".utf8) {
      if name.equals("grpc-retry-pushback-ms") {
        retryPushback = Int64(String(decoding: value, as: UTF8.self)) ?? -1
      } else if name.equals("grpc-encoding") {
        encoding = String(decoding: value.prefix(64), as: UTF8.self)
      } else {
        _ = status.take(name: name, value: value)
      }
    } else {
      // A field that is no base64 is the server's fault, but no reason to lose its answer.
      _ = block.receive(name: name, value: value)
    }
  }

  mutating func endBlock(endStream: Bool) -> Event? {
    let metadata = block
    block = Metadata()
    if let httpStatus, (100..<200).contains(httpStatus) {
      self.httpStatus = nil
      return nil
    }
    defer { hasBegun = true }
    if endStream {
      trailing = metadata
      return nil
    }
    if hasBegun { return nil }
    if let fault { return .fault(fault) }
    return .initial(metadata)
  }

  private var fault: RPCError? {
    guard status.code == nil else { return nil }
    if let httpStatus, httpStatus != 200 {
      return RPCError(
        .mapping(httpStatus: httpStatus), "the server answered with HTTP status \(httpStatus)",
        origin: .transport)
    }
    if !hasGRPCContentType {
      return RPCError(
        .unknown, "the server's answer has another content-type than application/grpc",
        origin: .transport)
    }
    return nil
  }

  /// The error a response that ended means; nil for OK.
  var outcome: RPCError? {
    if status.code != nil { return status.error(metadata: trailing) }
    return fault ?? RPCError(.unknown, "the response ends without a status", origin: .transport)
  }
}
