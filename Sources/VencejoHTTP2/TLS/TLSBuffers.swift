/// A loop's two buffers for TLS; its connections share them as they share the plain ones.
final class TLSBuffers {
  /// What was deciphered.
  let plain = UnsafeMutablePointer<UInt8>.allocate(capacity: EventLoop.readSize)
  /// What goes on the wire.
  private(set) var wire: UnsafeMutablePointer<UInt8>
  var count = 0
  private var capacity: Int

  init() {
    // Sixteen KiB make a record, and that takes 22 to 29 bytes more.
    capacity = EventLoop.writeSize + EventLoop.writeSlack + (16 << 10)
    wire = .allocate(capacity: capacity)
  }

  deinit {
    plain.deallocate()
    wire.deallocate()
  }

  func append(_ bytes: UnsafePointer<UInt8>, _ length: Int) {
    if count + length > capacity {
      let larger = max(capacity * 2, count + length)
      let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
      moved.update(from: wire, count: count)
      wire.deallocate()
      wire = moved
      capacity = larger
    }
    (wire + count).update(from: bytes, count: length)
    count += length
  }
}
