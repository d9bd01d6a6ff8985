/// How a channel treats its calls, method by method (gRPC "Service Config",
/// service_config.proto).
struct ServiceConfig: Sendable {
  enum Balancing: Sendable {
    case pickFirst
    case roundRobin
  }

  struct Method: Sendable {
    var timeout: Duration?
    var waitForReady: Bool?
    var maxRequestBytes: Int?
    var maxResponseBytes: Int?
    var retry: RetryPolicy?
    var hedging: HedgingPolicy?
  }

  struct Throttling: Sendable {
    var maxTokens: Double
    var tokenRatio: Double
  }

  /// By `service/method`, `service/` or nothing.
  private(set) var methods: [String: Method] = [:]
  private(set) var throttling: Throttling?
  private(set) var balancing: Balancing?
  /// What is asked of the servers' health service; nil asks nothing (gRFC A17).
  private(set) var healthService: String?

  /// `path` is `/package.Service/Method`: its own entry, its service's, or everybody's.
  func method(_ path: String) -> Method? {
    let name = path.dropFirst()
    if let own = methods[String(name)] { return own }
    if let slash = name.firstIndex(of: "/"), let own = methods[String(name[...slash])] {
      return own
    }
    return methods[""]
  }

  init() {}

  /// Reads the JSON form. Throws INVALID_ARGUMENT with the place of what is wrong. Names that
  /// are unknown are skipped, as service configs are written for clients of several versions.
  init(json: String) throws(RPCError) {
    let top: ConfigJSON
    do {
      top = try ConfigJSON(parsing: json)
    } catch {
      throw RPCError(.invalidArgument, "the service config is no JSON: \(error)")
    }
    do throws(ConfigFault) {
      try read(ConfigNode(top, "$"))
    } catch {
      throw RPCError(
        .invalidArgument, "the service config is not valid: \(error.path): \(error.message)")
    }
  }

  private mutating func read(_ top: ConfigNode) throws(ConfigFault) {
    let members = try top.object()
    if let list = members["methodConfig"] {
      for entry in try list.array() { try readMethod(entry) }
    }
    if let node = members["retryThrottling"] {
      let fields = try node.object()
      let maxTokens = try node.required("maxTokens", in: fields).number()
      let ratio = try node.required("tokenRatio", in: fields).number()
      guard maxTokens > 0, maxTokens <= 1_000 else {
        throw node.fault("maxTokens is above 0 and at most 1000")
      }
      // Three digits behind the point count, the rest is cut off.
      let cut = (ratio * 1_000).rounded(.down) / 1_000
      guard cut > 0 else { throw node.fault("tokenRatio is at least 0.001") }
      throttling = Throttling(maxTokens: maxTokens, tokenRatio: cut)
    }
    if let list = members["loadBalancingConfig"] {
      balancing = try Self.readBalancing(list)
    } else if let node = members["loadBalancingPolicy"] {
      switch try node.string().lowercased() {
      case "pick_first": balancing = .pickFirst
      case "round_robin": balancing = .roundRobin
      case let name: throw node.fault("unknown policy '\(name)'")
      }
    }
    if let node = members["healthCheckConfig"] {
      healthService = try node.object()["serviceName"]?.string() ?? ""
    }
  }

  /// The first policy of the list that is known here.
  private static func readBalancing(_ list: ConfigNode) throws(ConfigFault) -> Balancing {
    for entry in try list.array() {
      let policy = try entry.object()
      guard policy.count == 1, let (name, settings) = policy.first else {
        throw entry.fault("one policy with its configuration is expected")
      }
      _ = try settings.object()
      if name == "pick_first" { return .pickFirst }
      if name == "round_robin" { return .roundRobin }
    }
    throw list.fault("none of the policies is known: pick_first, round_robin")
  }

  private mutating func readMethod(_ node: ConfigNode) throws(ConfigFault) {
    let fields = try node.object()
    var method = Method()
    method.timeout = try fields["timeout"]?.duration()
    method.waitForReady = try fields["waitForReady"]?.bool()
    method.maxRequestBytes = try fields["maxRequestMessageBytes"]?.count()
    method.maxResponseBytes = try fields["maxResponseMessageBytes"]?.count()
    if let policy = fields["retryPolicy"] { method.retry = try RetryPolicy(config: policy) }
    if let policy = fields["hedgingPolicy"] { method.hedging = try HedgingPolicy(config: policy) }
    if method.retry != nil, method.hedging != nil {
      throw node.fault("either retryPolicy or hedgingPolicy")
    }
    guard let names = fields["name"] else { return }
    for entry in try names.array() {
      let name = try entry.object()
      let service = try name["service"]?.string() ?? ""
      let rpc = try name["method"]?.string() ?? ""
      guard !service.isEmpty || rpc.isEmpty else { throw entry.fault("a method without a service") }
      let key = service.isEmpty ? "" : "\(service)/\(rpc)"
      guard methods.updateValue(method, forKey: key) == nil else {
        throw entry.fault("the name is there twice")
      }
    }
  }
}

/// When a call is made several times at once, and the first good answer wins (gRFC A6,
/// "Hedging Policy").
struct HedgingPolicy: Sendable, Hashable {
  /// Attempts altogether, from 2 to 5.
  var maxAttempts: Int
  /// Between one attempt and the next; zero makes all at once.
  var delay: Duration
  /// Statuses after which the next attempt is made at once; others end the call.
  var nonFatalCodes: Set<StatusCode>

  fileprivate init(config node: ConfigNode) throws(ConfigFault) {
    let fields = try node.object()
    maxAttempts = try node.attempts(in: fields)
    delay = try fields["hedgingDelay"]?.duration() ?? .zero
    nonFatalCodes = try fields["nonFatalStatusCodes"]?.codes() ?? []
  }
}

extension RetryPolicy {
  fileprivate init(config node: ConfigNode) throws(ConfigFault) {
    let fields = try node.object()
    let codes = try node.required("retryableStatusCodes", in: fields).codes()
    let multiplier = try node.required("backoffMultiplier", in: fields).number()
    let initial = try node.required("initialBackoff", in: fields).duration()
    let maximum = try node.required("maxBackoff", in: fields).duration()
    guard !codes.isEmpty else { throw node.fault("no retryableStatusCodes") }
    guard multiplier > 0 else { throw node.fault("backoffMultiplier is above 0") }
    guard initial > .zero, maximum > .zero else { throw node.fault("a backoff is above 0") }
    self.init(
      maxAttempts: try node.attempts(in: fields), initialBackoff: initial, maxBackoff: maximum,
      backoffMultiplier: multiplier, retryableCodes: codes)
  }
}

private struct ConfigFault: Error {
  let path: String
  let message: String
}

/// A JSON value and where it stands.
private struct ConfigNode {
  private let node: ConfigJSON
  private let path: String

  init(_ node: ConfigJSON, _ path: String) {
    self.node = node
    self.path = path
  }

  func fault(_ message: String) -> ConfigFault { ConfigFault(path: path, message: message) }

  /// The members; null ones are as good as absent.
  func object() throws(ConfigFault) -> [String: ConfigNode] {
    guard case .object(let members) = node else {
      throw fault("expected an object, not \(node.description)")
    }
    var found: [String: ConfigNode] = [:]
    for member in members {
      let child = ConfigNode(member.value, "\(path).\(member.name)")
      guard found.updateValue(child, forKey: member.name) == nil else {
        throw child.fault("the name is there twice")
      }
    }
    return found.filter { if case .null = $0.value.node { false } else { true } }
  }

  func array() throws(ConfigFault) -> [ConfigNode] {
    guard case .array(let elements) = node else {
      throw fault("expected an array, not \(node.description)")
    }
    return elements.enumerated().map { ConfigNode($0.element, "\(path)[\($0.offset)]") }
  }

  func required(
    _ name: String, in fields: [String: ConfigNode]
  ) throws(ConfigFault) -> ConfigNode {
    guard let field = fields[name] else { throw fault("\(name) is missing") }
    return field
  }

  func string() throws(ConfigFault) -> String {
    guard case .string(let text) = node else {
      throw fault("expected a string, not \(node.description)")
    }
    return text
  }

  func bool() throws(ConfigFault) -> Bool {
    guard case .bool(let value) = node else {
      throw fault("expected true or false, not \(node.description)")
    }
    return value
  }

  /// A float, which may stand in a string as well (protobuf's JSON mapping).
  func number() throws(ConfigFault) -> Double {
    let value: Double? =
      switch node {
      case .number(let text), .string(let text): Double(text)
      default: nil
      }
    guard let value, value.isFinite else {
      throw fault("expected a number, not \(node.description)")
    }
    return value
  }

  /// A uint32, which JSON may also write as a string (protobuf's JSON mapping).
  func count() throws(ConfigFault) -> Int {
    let value: UInt32? =
      switch node {
      case .number(let text): Double(text).flatMap { UInt32(exactly: $0) }
      case .string(let text): UInt32(text)
      default: nil
      }
    guard let value else { throw fault("expected a whole number from 0 to 4294967295") }
    return Int(value)
  }

  func attempts(in fields: [String: ConfigNode]) throws(ConfigFault) -> Int {
    let field = try required("maxAttempts", in: fields)
    let attempts = try field.count()
    guard attempts > 1 else { throw field.fault("at least 2") }
    return min(attempts, 5)
  }

  /// `"1.5s"` (protobuf's JSON mapping of Duration), never below zero.
  func duration() throws(ConfigFault) -> Duration {
    let text = try string()
    let wrong = fault("expected a duration such as \"1.5s\", not \"\(text)\"")
    guard text.hasSuffix("s") else { throw wrong }
    let parts = text.dropLast().split(
      separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let isDigits = { (part: Substring) in
      !part.isEmpty && part.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }
    guard let whole = parts.first, isDigits(whole), let seconds = Int64(whole),
      seconds <= 315_576_000_000
    else { throw wrong }
    var nanoseconds: Int64 = 0
    if parts.count == 2 {
      guard isDigits(parts[1]), parts[1].count <= 9, let digits = Int64(parts[1]) else {
        throw wrong
      }
      nanoseconds = digits
      for _ in parts[1].count..<9 { nanoseconds *= 10 }
    }
    return .seconds(seconds) + .nanoseconds(nanoseconds)
  }

  /// Names or numbers of statuses.
  func codes() throws(ConfigFault) -> Set<StatusCode> {
    var codes: Set<StatusCode> = []
    for element in try array() { codes.insert(try element.code()) }
    return codes
  }

  private func code() throws(ConfigFault) -> StatusCode {
    let code: StatusCode? =
      switch node {
      case .number(let text): Int(text).map(StatusCode.init(rawValue:))
      case .string(let text): StatusCode(name: text.uppercased())
      default: nil
      }
    guard let code, code.isDefined else { throw fault("expected the name of a status") }
    return code
  }
}
