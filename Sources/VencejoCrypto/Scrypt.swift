import COpenSSL

/// scrypt (RFC 7914), a password hash that is expensive in memory and time.
public enum Scrypt {
  /// The cost of one derivation; memory is about `128 * blockSize * cost` bytes.
  public struct Parameters: Sendable, Hashable {
    /// N, a power of two above 1.
    public var cost: Int
    /// r.
    public var blockSize: Int
    /// p.
    public var parallelism: Int

    /// Parameters as RFC 7914 names them.
    public init(cost: Int, blockSize: Int, parallelism: Int) {
      self.cost = cost
      self.blockSize = blockSize
      self.parallelism = parallelism
    }
  }

  /// Derives `length` bytes from `password` and `salt`.
  ///
  /// - Throws: ``CryptoError`` when the parameters are out of range or memory is short.
  public static func derive(
    password: [UInt8], salt: [UInt8], parameters: Parameters, length: Int
  ) throws(CryptoError) -> [UInt8] {
    guard let n = UInt64(exactly: parameters.cost), let r = UInt64(exactly: parameters.blockSize),
      let p = UInt64(exactly: parameters.parallelism), length > 0, n > 1, r > 0, p > 0
    else { throw CryptoError(operation: "scrypt") }
    // OpenSSL refuses above 32 MiB unless told otherwise; 1 GiB bounds a stored mistake.
    let memory: UInt64 = 1 << 30
    var output = [UInt8](repeating: 0, count: length)
    let ok = password.withUnsafeBufferPointer { secret in
      // A null password means "check the parameters only" to OpenSSL, so an empty one
      // must still have an address.
      withUnsafeBytes(of: UInt8(0)) { empty in
        EVP_PBE_scrypt(
          (UnsafeRawPointer(secret.baseAddress) ?? empty.baseAddress)?
            .assumingMemoryBound(to: CChar.self),
          secret.count, salt, salt.count, n, r, p, memory, &output, length)
      }
    }
    guard ok == 1 else { throw CryptoError(operation: "scrypt") }
    return output
  }
}
