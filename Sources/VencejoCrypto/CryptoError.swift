/// A failure of the cryptographic library.
///
/// Hashing never fails in practice; key derivation does when memory runs out or
/// its parameters are out of range.
public struct CryptoError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What was being computed.
  public let operation: String

  public var description: String { "\(operation) failed in OpenSSL" }
}
