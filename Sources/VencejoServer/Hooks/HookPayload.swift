import VencejoCrypto
import VencejoHTTPClient
import VencejoJSON
import VencejoProtobuf
import VencejoStore

/// What is posted for one event.
struct HookPayload: Sendable {
  let body: [UInt8]
  let contentType: String

  /// - Throws: `JSONError` for what JSON cannot express.
  init(_ message: some Message, _ format: HookFormat) throws {
    switch format {
    case .json:
      body = Array(try message.jsonString().utf8)
      contentType = "application/json"
    case .binary:
      body = message.serializedBytes()
      contentType = "application/x-protobuf"
    }
  }
}

/// Makes payloads of one kind of delivery, from what is in the store when it is sent.
protocol HookRenderer: Sendable {
  /// Nil where nothing is left to be told: the delivery is done then.
  func payload(of delivery: HookDelivery) async throws -> HookPayload?
}

/// The signature of a post, as "Standard Webhooks" has it: HMAC-SHA256 over
/// `id.timestamp.body`. Receivers refuse what is older than five minutes or known by its id.
enum HookSignature {
  static let secretPrefix = "whsec_"

  /// The headers of an event that is sent at a time in seconds since the Unix epoch.
  static func headers(
    id: String, seconds: Int64, body: [UInt8], secret: [UInt8]
  ) -> [(name: String, value: String)] {
    let signed = Array("\(id).\(seconds).".utf8) + body
    let code = base64(HMACSHA256.authenticate(signed, key: secret))
    return [
      ("webhook-id", id), ("webhook-timestamp", String(seconds)),
      ("webhook-signature", "v1,\(code)"),
    ]
  }

  /// A secret of the server's making.
  static func newSecret() -> String { secretPrefix + base64(SecureRandom.bytes(32)) }

  /// The key of a secret: what stands in base64 behind `whsec_`, or else its bytes.
  ///
  /// - Throws: `BAD_SECRET` unless it is from 16 to 128 bytes.
  static func key(_ secret: String) throws(StoreError) -> [UInt8] {
    let key =
      secret.hasPrefix(secretPrefix)
      ? decoded(String(secret.dropFirst(secretPrefix.count))) : Array(secret.utf8)
    guard let key, (16...128).contains(key.count) else {
      throw .invalid(
        "signing_secret", "BAD_SECRET",
        "from 16 to 128 bytes, as they are or in base64 behind \(secretPrefix)")
    }
    return key
  }

  static func base64(_ bytes: [UInt8]) -> String {
    let text = String(
      Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
    return text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
  }

  private static func decoded(_ text: String) -> [UInt8]? {
    let plain = text.drop { $0 == " " }
    var letters = plain.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
    while letters.last == "=" { letters.removeLast() }
    return Base64URL.decode(String(letters))
  }
}

/// Where hooks may point to.
enum HookRules {
  /// - Throws: `BAD_URI`.
  static func check(_ uri: String, _ policy: NetworkPolicy) throws(StoreError) -> HTTPAddress {
    guard let address = HTTPAddress(uri) else {
      throw .invalid(
        "uri", "BAD_URI",
        "an https URL of at most \(HTTPAddress.limit) bytes, without user and fragment")
    }
    // In plain text to machines of the operator's own networks only.
    guard address.isSecure || !policy.allowed.isEmpty else {
      throw .invalid(
        "uri", "BAD_URI", "an https URL: http is for private networks that are allowed")
    }
    return address
  }
}
