import VencejoCompression

/// What the fields of a request say (gRPC over HTTP2, "Requests").
struct RequestHead {
  /// Nil for a path that nobody serves.
  private(set) var entry: MethodTable.Entry?
  private var unknownPath = ""
  private(set) var isPost = false
  private(set) var isHead = false
  private var isGet = false
  private(set) var hasGRPCContentType = false
  var metadata = Metadata()
  private(set) var userAgent: String?
  /// Nanoseconds; nil for ever.
  private(set) var timeout: Int64?
  /// The messages' encoding.
  private(set) var encoding: String?
  /// What the client can decompress.
  private(set) var accepted: [Compression] = []
  /// The first thing found wrong.
  private(set) var fault: RPCError?

  /// Whether a service has the method.
  var isKnown: Bool { entry != nil && unknownPath.isEmpty }
  var path: String { unknownPath.isEmpty ? entry?.method.path ?? "" : unknownPath }

  /// A person, or a probe, and no gRPC client.
  var asksForPage: Bool {
    unknownPath == "/" && (isGet || isHead || isPost && !hasGRPCContentType)
  }

  mutating func take(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ connection: ServerConnection
  ) {
    guard let first = name.first else { return }
    if first == UInt8(ascii: ":") {
      if name.equals(":path") {
        entry = connection.host.methods.find(value)
        if entry == nil {
          let fallback = connection.host.fallback
          unknownPath = String(
            decoding: fallback == nil ? value.prefix(256) : value[...], as: UTF8.self)
          entry = fallback
        }
      } else if name.equals(":method") {
        isPost = value.equals("POST")
        isGet = value.equals("GET")
        isHead = value.equals("HEAD")
      }
      return
    }
    switch name.count {
    case 2 where name.equals("te"): return
    case 10 where name.equals("user-agent"): userAgent = connection.userAgent(value)
    case 12 where name.equals("content-type"):
      hasGRPCContentType = Self.isGRPC(contentType: value)
    case 12 where name.equals("grpc-timeout"):
      timeout = Timeout.parse(value)
      if timeout == nil { refuse("the grpc-timeout field is malformed") }
    case 13 where name.equals("grpc-encoding"):
      encoding = String(decoding: value.prefix(64), as: UTF8.self)
    case 20 where name.equals("grpc-accept-encoding"):
      accepted = connection.accepted(value)
    case _ where name.starts(with: "grpc-".utf8): return
    default:
      if !metadata.receive(name: name, value: value) {
        refuse("a binary metadata field is not base64")
      }
    }
  }

  private mutating func refuse(_ message: String) {
    fault = fault ?? RPCError(.internalError, message)
  }

  /// RFC 9110 section 8.3: the type is compared without regard to case; what follows it is
  /// a parameter or a subtype as `application/grpc+proto`.
  private static func isGRPC(contentType: UnsafeRawBufferPointer) -> Bool {
    if contentType.equals("application/grpc") { return true }
    let wanted = "application/grpc".utf8
    guard contentType.count >= wanted.count,
      zip(contentType, wanted).allSatisfy({ $0 | 0x20 == $1 | 0x20 })
    else { return false }
    guard contentType.count > wanted.count else { return true }
    let next = contentType[wanted.count]
    return next == UInt8(ascii: "+") || next == UInt8(ascii: ";") || next == UInt8(ascii: " ")
  }
}
