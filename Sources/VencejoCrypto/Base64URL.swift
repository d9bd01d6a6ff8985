/// base64url without padding (RFC 4648, section 5).
public enum Base64URL {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  private static let values: [UInt8] = {
    var table = [UInt8](repeating: 0xff, count: 256)
    for (value, letter) in alphabet.enumerated() { table[Int(letter)] = UInt8(value) }
    return table
  }()

  /// The text of `bytes`.
  public static func encode(_ bytes: [UInt8]) -> String {
    let length = (bytes.count * 4 + 2) / 3
    return String(unsafeUninitializedCapacity: length) { output in
      var at = 0
      var buffer: UInt32 = 0
      var bits = 0
      for byte in bytes {
        buffer = (buffer << 8) | UInt32(byte)
        bits += 8
        while bits >= 6 {
          bits -= 6
          output[at] = alphabet[Int((buffer >> UInt32(bits)) & 63)]
          at += 1
        }
        buffer &= 0xff
      }
      if bits > 0 {
        output[at] = alphabet[Int((buffer << UInt32(6 - bits)) & 63)]
        at += 1
      }
      return at
    }
  }

  /// The bytes of `text`, or nil when it is not canonical unpadded base64url: one text per
  /// value, so that a token cannot be written in two ways.
  public static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count * 3 / 4)
    var buffer: UInt32 = 0
    var bits = 0
    var letters = 0
    for letter in text.utf8 {
      let value = values[Int(letter)]
      guard value != 0xff else { return nil }
      letters += 1
      buffer = ((buffer << 6) | UInt32(value)) & 0xffff
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8((buffer >> UInt32(bits)) & 0xff))
      }
    }
    guard letters % 4 != 1, buffer & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
    return bytes
  }
}
