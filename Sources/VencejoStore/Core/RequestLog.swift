import VencejoCrypto
import VencejoSQLite

/// Requests with a request_id (AIP-155), remembered for 24 hours per user and method.
extension WriteTransaction {
  static let requestMemory: Int64 = 24 * 3600 * 1_000_000

  /// What the request was answered with, when it is a repeat.
  ///
  /// - Throws: `REQUEST_ID_REUSED` when the same id came with another body.
  func rememberedAnswer(
    user: Int64, rpc: String, requestID: String, bodyHash: [UInt8]
  ) throws(StoreError) -> [UInt8]? {
    guard !requestID.isEmpty else { return nil }
    guard requestID.utf8.count <= 64 else {
      throw .invalid("request_id", "BAD_REQUEST_ID", "a request_id has at most 64 bytes")
    }
    let known = try first(
      """
      SELECT body_hash, answer FROM request_log
      WHERE user_id = ? AND rpc = ? AND request_id = ? AND expire_us > ?
      """, user, rpc, requestID, now
    ) { (hash: $0.blob(0), answer: $0.blob(1)) }
    guard let known else { return nil }
    guard known.hash == bodyHash else {
      throw .invalid(
        "request_id", "REQUEST_ID_REUSED", "this request_id was used with another request")
    }
    return known.answer
  }

  /// Keeps the answer for a repeat.
  func rememberAnswer(
    user: Int64, rpc: String, requestID: String, bodyHash: [UInt8], answer: [UInt8]
  ) throws(StoreError) {
    guard !requestID.isEmpty else { return }
    try run("DELETE FROM request_log WHERE expire_us <= ?", now)
    try run(
      """
      INSERT OR REPLACE INTO request_log(user_id, rpc, request_id, body_hash, answer, expire_us)
      VALUES (?, ?, ?, ?, ?, ?)
      """, user, rpc, requestID, bodyHash, answer, now + Self.requestMemory)
  }
}

extension WriteTransaction {
  /// Whether a request is done for the first time; a repeat is answered from the state as it is
  /// now. `body` is what makes two requests the same.
  ///
  /// - Throws: `REQUEST_ID_REUSED`, `BAD_REQUEST_ID`.
  func isNew(_ rpc: String, _ requestID: String, _ body: KeysetWriter, by user: Int64)
    throws(StoreError) -> Bool
  {
    let hash = SHA256.digest(body.bytes)
    if try rememberedAnswer(user: user, rpc: rpc, requestID: requestID, bodyHash: hash) != nil {
      return false
    }
    try rememberAnswer(user: user, rpc: rpc, requestID: requestID, bodyHash: hash, answer: [])
    return true
  }
}
