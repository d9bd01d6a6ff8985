/// Percent-encoding of `grpc-message` (gRPC over HTTP2, "Responses", Percent-Encoded):
/// bytes 0x20 to 0x7E stand for themselves except `%`; everything else is `%XX`.
enum PercentEncoding {
  private static let hex = Array("0123456789ABCDEF".utf8)

  static func encode(_ text: String) -> String {
    var text = text
    return text.withUTF8 { bytes in
      guard bytes.contains(where: { !isPlain($0) }) else {
        return String(decoding: bytes, as: UTF8.self)
      }
      var out: [UInt8] = []
      out.reserveCapacity(bytes.count + 16)
      for byte in bytes {
        if isPlain(byte) {
          out.append(byte)
        } else {
          out.append(UInt8(ascii: "%"))
          out.append(hex[Int(byte >> 4)])
          out.append(hex[Int(byte & 15)])
        }
      }
      return String(decoding: out, as: UTF8.self)
    }
  }

  /// Lenient, as the specification asks: what is no valid escape stays as it came, and
  /// invalid UTF-8 is repaired.
  static func decode(_ bytes: some Collection<UInt8>) -> String {
    let bytes = Array(bytes)
    guard bytes.contains(UInt8(ascii: "%")) else { return String(decoding: bytes, as: UTF8.self) }
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
        let high = value(bytes[index + 1]), let low = value(bytes[index + 2])
      {
        out.append(high << 4 | low)
        index += 3
      } else {
        out.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte <= 0x7E && byte != UInt8(ascii: "%")
  }

  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
