import COpenSSL

/// SHA-256 (FIPS 180-4).
public enum SHA256 {
  /// Bytes of a digest.
  public static let size = 32

  /// The digest of `bytes`.
  public static func digest(_ bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBufferPointer { input in
      [UInt8](unsafeUninitializedCapacity: size) { output, count in
        _ = COpenSSL.SHA256(input.baseAddress, input.count, output.baseAddress)
        count = size
      }
    }
  }

  /// The digest of the UTF-8 of `text`.
  public static func digest(_ text: String) -> [UInt8] { digest(Array(text.utf8)) }

  /// The digest of bytes that come piece by piece.
  public final class Stream {
    private let context = EVP_MD_CTX_new()

    public init() { EVP_DigestInit_ex(context, EVP_sha256(), nil) }

    deinit { EVP_MD_CTX_free(context) }

    public func update(_ bytes: ArraySlice<UInt8>) {
      bytes.withUnsafeBytes { _ = EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    }

    /// The digest of all of it; once, and nothing after it.
    public func finish() -> [UInt8] {
      [UInt8](unsafeUninitializedCapacity: size) { output, count in
        _ = EVP_DigestFinal_ex(context, output.baseAddress, nil)
        count = size
      }
    }
  }
}

/// HMAC-SHA-256 (RFC 2104, RFC 4231).
public enum HMACSHA256 {
  /// The 32-byte authentication code of `message` under `key`.
  ///
  /// Written over SHA-256 itself: OpenSSL 3's own HMAC fetches its provider on each
  /// call, which costs several times the hash.
  public static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    let block = key.count > 64 ? SHA256.digest(key) : key
    var inner = [UInt8](repeating: 0x36, count: 64)
    var outer = [UInt8](repeating: 0x5c, count: 64)
    for (index, byte) in block.enumerated() {
      inner[index] ^= byte
      outer[index] ^= byte
    }
    return SHA256.digest(outer + SHA256.digest(inner + message))
  }
}

/// Whether two byte strings are equal, in a time that depends on their lengths only.
public func constantTimeEquals(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>)
  -> Bool
{
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for (a, b) in zip(left, right) { difference |= a ^ b }
  return difference == 0
}
