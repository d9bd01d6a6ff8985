import VencejoProtobuf

extension RPCError {
  /// Peers refuse trailers above 8 KiB; message and details stay below with room for the
  /// metadata.
  private static let messageLimit = 3 * 1024
  private static let detailsLimit = 4 * 1024

  /// The fields that carry the status: `grpc-status`, `grpc-message`,
  /// `grpc-status-details-bin` and the metadata (gRPC over HTTP2, "Responses").
  var statusFields: [(String, String)] {
    let code = self.code == .ok ? StatusCode.unknown : self.code
    var fields = [("grpc-status", "\(code.rawValue)")]
    let message = Self.cut(self.message)
    if !message.isEmpty { fields.append(("grpc-message", PercentEncoding.encode(message))) }
    if !details.isEmpty {
      var status = GoogleRPC.Status()
      status.code = Int32(truncatingIfNeeded: code.rawValue)
      status.message = message
      status.details = details
      var bytes = status.serializedBytes()
      while bytes.count > Self.detailsLimit, !status.details.isEmpty {
        status.details.removeLast()
        bytes = status.serializedBytes()
      }
      fields.append(("grpc-status-details-bin", Base64.encode(bytes)))
    }
    if metadata.problem == nil { fields += metadata.fields }
    return fields
  }

  /// Long messages are cut, with a mark; the limit counts what travels.
  private static func cut(_ message: String) -> String {
    guard message.utf8.count * 3 > messageLimit,
      PercentEncoding.encode(message).utf8.count > messageLimit
    else { return message }
    var kept = ""
    var size = 0
    for character in message {
      size += PercentEncoding.encode(String(character)).utf8.count
      if size > messageLimit - 16 { break }
      kept.append(character)
    }
    return kept + "… (cut)"
  }
}

/// The status of a response as its fields come in.
struct StatusParser {
  private(set) var code: StatusCode?
  private var message = ""
  private var details: [Google.AnyMessage] = []

  /// Takes the field when it is one of the status.
  mutating func take(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    if name.equals("grpc-status") {
      // No digits but those of a number: "+5" and "" are none, and a tail counts too.
      let isNumber = value.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      let parsed = isNumber ? Int(String(decoding: value, as: UTF8.self)) : nil
      let defined = parsed.map(StatusCode.init(rawValue:))
      code = if let defined, defined.isDefined { defined } else { .unknown }
      return true
    }
    if name.equals("grpc-message") {
      message = PercentEncoding.decode(value)
      return true
    }
    if name.equals("grpc-status-details-bin") {
      if let bytes = Base64.decode(value),
        let status = try? GoogleRPC.Status(serializedBytes: bytes)
      {
        details = status.details
      }
      return true
    }
    return false
  }

  /// The error that the status means; nil for OK.
  func error(metadata: Metadata) -> RPCError? {
    guard let code, code != .ok else { return nil }
    return RPCError(code, message, details: details, metadata: metadata, origin: .remote)
  }
}
