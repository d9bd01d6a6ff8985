import Glibc

extension UnsafeRawBufferPointer {
  /// Byte for byte.
  func equals(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    guard let baseAddress else { return true }
    return memcmp(baseAddress, text.utf8Start, count) == 0
  }

  /// Byte for byte.
  func equals(_ bytes: [UInt8]) -> Bool {
    guard count == bytes.count, let baseAddress else { return bytes.isEmpty && isEmpty }
    return memcmp(baseAddress, bytes, count) == 0
  }
}
