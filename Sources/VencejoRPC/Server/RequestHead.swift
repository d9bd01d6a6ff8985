import VencejoCompression

/// What the fields of a request say (gRPC over HTTP2, "Requests").
struct RequestHead {
  /// Nil for a path that nobody serves.
  private(set) var entry: MethodTable.Entry?
  var metadata = Metadata()
  /// Nanoseconds; below 0 for ever.
  private(set) var timeout: Int64 = -1
  /// What the client can decompress.
  private(set) var accepted: [Compression] = []
  private var odd: Odd?
  private(set) var isPost = false
  private(set) var isHead = false
  private var isGet = false
  private(set) var hasGRPCContentType = false
  /// The client calls itself as in the connection's first call.
  private(set) var hasUsualAgent = false

  /// What most requests do not have; each idle stream would take room for it.
  private final class Odd {
    var unknownPath = ""
    var userAgent: String?
    var encoding: String?
    var fault: RPCError?
  }

  /// The messages' encoding.
  var encoding: String? { odd?.encoding }
  /// The first thing found wrong.
  var fault: RPCError? { odd?.fault }
  var unusualAgent: String? { odd?.userAgent }
  private var unknownPath: String { odd?.unknownPath ?? "" }

  private mutating func note(_ change: (Odd) -> Void) {
    let odd = odd ?? Odd()
    self.odd = odd
    change(odd)
  }

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
          let path = String(
            decoding: fallback == nil ? value.prefix(256) : value[...], as: UTF8.self)
          note { $0.unknownPath = path }
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
    case 10 where name.equals("user-agent"):
      hasUsualAgent = connection.isUsualAgent(value)
      if !hasUsualAgent {
        let agent = String(decoding: value, as: UTF8.self)
        note { $0.userAgent = agent }
      }
    case 12 where name.equals("content-type"):
      hasGRPCContentType = Self.isGRPC(contentType: value)
    case 12 where name.equals("grpc-timeout"):
      if let parsed = Timeout.parse(value) {
        timeout = parsed
      } else {
        refuse("the grpc-timeout field is malformed")
      }
    case 13 where name.equals("grpc-encoding"):
      let encoding = String(decoding: value.prefix(64), as: UTF8.self)
      note { $0.encoding = encoding }
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
    note { $0.fault = $0.fault ?? RPCError(.internalError, message) }
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
