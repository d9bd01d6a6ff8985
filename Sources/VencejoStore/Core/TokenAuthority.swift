import VencejoCrypto

/// Seals and opens the opaque tokens: resume tokens (a position of the log) and page tokens (a
/// place in a listing). Both are base64url with an HMAC-SHA-256 cut to 16 bytes.
public struct TokenAuthority: Sendable {
  /// Days a resume token is honoured; the log is kept longer.
  public static let lifetimeDays = 14
  static let microsecondsPerDay: Int64 = 86_400_000_000

  struct Key: Sendable {
    let id: Int64
    let secret: [UInt8]
  }

  /// Current first.
  let keys: [Key]
  /// For what must outlive the rotation of keys.
  let root: [UInt8]
  /// Random, changed by a restore from a backup.
  let history: [UInt8]

  private static let version: UInt8 = 1
  private static let macLength = 16

  /// Which log a resume token belongs to.
  public enum ResumeKind: UInt8, Sendable {
    case chat = 1
    case record = 2
  }

  private static let pageKind: UInt8 = 0x70

  /// Why a resume token cannot be honoured.
  public enum Refusal: Error, Sendable, Hashable {
    /// Not one of ours, or changed on its way.
    case forged
    /// From another life of this database: it was restored from a backup since.
    case otherHistory
    /// Older than ``TokenAuthority/lifetimeDays``, or its part of the log is gone.
    case expired
    /// For another kind of log, another container or other targets.
    case mismatch
  }

  /// A resume token for `position`; `binding` is what it shall be good for only (a container, a
  /// hash of targets), empty for chats. `since`: of a walk from the beginning that is under way, the
  /// position it knows everything of that is gone up to.
  public func resumeToken(
    _ kind: ResumeKind, position: Int64, since: Int64? = nil, now: Int64, binding: [UInt8] = []
  ) -> String {
    var writer = KeysetWriter()
    writer.raw(history)
    // A vector of (shard, position) from day one; this store has one shard.
    writer.int(1)
    writer.int(0)
    writer.int(position)
    writer.int(now / Self.microsecondsPerDay)
    writer.raw(binding)
    if let since, since != position { writer.int(since) }
    return seal(kind.rawValue, writer.bytes)
  }

  /// The position of a resume token of `kind` and `binding`.
  public func position(
    ofResumeToken text: String, _ kind: ResumeKind, now: Int64, binding: [UInt8] = []
  ) throws(Refusal) -> Int64 {
    try place(ofResumeToken: text, kind, now: now, binding: binding).position
  }

  /// The same with what a walk from the beginning knows; the position itself of other tokens.
  func place(
    ofResumeToken text: String, _ kind: ResumeKind, now: Int64, binding: [UInt8] = []
  ) throws(Refusal) -> (position: Int64, since: Int64) {
    guard let (sealedKind, body) = unseal(text, limit: 1024) else { throw .forged }
    guard sealedKind == kind.rawValue else { throw .mismatch }
    var reader = KeysetReader(body)
    guard let origin = reader.raw(), reader.int() == 1, reader.int() == 0,
      let position = reader.int(), let day = reader.int(), let bound = reader.raw()
    else { throw .forged }
    var since = position
    if !reader.isAtEnd {
      guard let known = reader.int(), reader.isAtEnd else { throw .forged }
      since = known
    }
    guard origin == history else { throw .otherHistory }
    guard bound == binding else { throw .mismatch }
    guard now / Self.microsecondsPerDay - day <= Int64(Self.lifetimeDays) else { throw .expired }
    return (position, since)
  }

  /// A page token that continues at `keyset`, for requests whose other arguments are
  /// `arguments` (AIP-158: they must stay the same).
  public func pageToken(keyset: KeysetWriter, arguments: KeysetWriter) -> String {
    var writer = KeysetWriter()
    writer.raw(Array(SHA256.digest(arguments.bytes).prefix(8)))
    writer.raw(keyset.bytes)
    return seal(Self.pageKind, writer.bytes)
  }

  /// The keyset of a page token.
  ///
  /// - Throws: `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func keyset(ofPageToken text: String, arguments: KeysetWriter) throws(StoreError)
    -> KeysetReader
  {
    // A keyset holds what the listing is sorted by, which may be a long text.
    guard let (kind, body) = unseal(text, limit: 4 << 20), kind == Self.pageKind else {
      throw Self.badPageToken
    }
    var reader = KeysetReader(body)
    guard let hash = reader.raw(), let keyset = reader.raw(), reader.isAtEnd else {
      throw Self.badPageToken
    }
    guard hash == Array(SHA256.digest(arguments.bytes).prefix(8)) else {
      throw .invalid(
        "page_token", "PAGE_TOKEN_MISMATCH",
        "the page_token belongs to a request with other arguments")
    }
    return KeysetReader(keyset)
  }

  /// What a page token that is not ours is answered with.
  public static let badPageToken = StoreError.invalid(
    "page_token", "BAD_PAGE_TOKEN", "the page_token is not one this server gave out")

  // MARK: Sealing

  private func seal(_ kind: UInt8, _ body: [UInt8]) -> String {
    guard let key = keys.first else { return "" }
    var bytes: [UInt8] = [Self.version, UInt8(truncatingIfNeeded: key.id), kind]
    bytes += body
    bytes += HMACSHA256.authenticate(bytes, key: key.secret).prefix(Self.macLength)
    return Base64URL.encode(bytes)
  }

  private func unseal(_ text: String, limit: Int) -> (kind: UInt8, body: [UInt8])? {
    guard text.utf8.count <= limit, let bytes = Base64URL.decode(text),
      bytes.count >= 3 + Self.macLength, bytes[0] == Self.version
    else { return nil }
    let signed = Array(bytes.dropLast(Self.macLength))
    for key in keys where UInt8(truncatingIfNeeded: key.id) == bytes[1] {
      let mac = HMACSHA256.authenticate(signed, key: key.secret).prefix(Self.macLength)
      if constantTimeEquals(mac, bytes.suffix(Self.macLength)) {
        return (bytes[2], Array(signed.dropFirst(3)))
      }
    }
    return nil
  }
}
