import CNGHTTP2
import Glibc

/// Header fields ready to send: built once, then sent as often as needed without a
/// copy. Names are lowered to lower case (RFC 9113, section 8.2.1).
///
/// A stream keeps the lists it sends until it closes, so that nghttp2 may read them
/// where they lie.
public struct HeaderList: Sendable {
  let storage: HeaderStorage

  /// Makes a list of names and values, pseudo-header fields first.
  public init(_ fields: [(String, String)]) { self.init(base: nil, adding: fields) }

  /// The fields of `base`, shared, and then others.
  public init(base: HeaderList?, adding fields: [(String, String)]) {
    var bytes = 0
    for (name, value) in fields { bytes += name.utf8.count + value.utf8.count }
    storage = HeaderStorage(base: base?.storage, count: fields.count, bytes: bytes)
    for (name, value) in fields { storage.append(name.utf8, value.utf8) }
  }

  /// The fields of `base`, shared, and then others whose values may be any bytes.
  public init(base: HeaderList?, adding fields: [(name: [UInt8], value: [UInt8])]) {
    var bytes = 0
    for (name, value) in fields { bytes += name.count + value.count }
    storage = HeaderStorage(base: base?.storage, count: fields.count, bytes: bytes)
    for (name, value) in fields { storage.append(name, value) }
  }

  /// How many fields it has.
  public var count: Int { storage.count }

  /// Bytes of names and values, with 32 more for each field (RFC 9113, section
  /// 6.5.2). Lists above `HeaderList.maxSize` cannot be sent.
  public var size: Int { storage.size }

  /// The largest list nghttp2 is asked to send: 1 MiB, far beyond what peers take.
  public static let maxSize = 1 << 20

  /// Names and values as text, for logs and tests.
  public var fields: [(name: String, value: String)] {
    (0..<storage.count).map { i in
      let field = storage.fields[i]
      return (
        String(
          decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self),
        String(
          decoding: UnsafeBufferPointer(start: field.value, count: field.valuelen), as: UTF8.self)
      )
    }
  }
}

/// One allocation: the fields, then their bytes.
///
/// `@unchecked Sendable`: filled by `HeaderList.init` and never changed again.
final class HeaderStorage: @unchecked Sendable {
  let fields: UnsafeMutablePointer<nghttp2_nv>
  @exclusivity(unchecked) private(set) var count: Int
  @exclusivity(unchecked) private var free: UnsafeMutablePointer<UInt8>
  private let base: HeaderStorage?
  @exclusivity(unchecked) private(set) var size: Int
  /// A response of the 100s, which is not the last.
  private(set) var isInformational: Bool

  init(base: HeaderStorage?, count more: Int, bytes: Int) {
    self.base = base
    count = base?.count ?? 0
    size = base?.size ?? 0
    isInformational = base?.isInformational ?? false
    let table = (count + more) * MemoryLayout<nghttp2_nv>.stride
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: max(table + bytes, 1), alignment: MemoryLayout<nghttp2_nv>.alignment)
    fields = memory.bindMemory(to: nghttp2_nv.self, capacity: count + more)
    free = (memory + table).bindMemory(to: UInt8.self, capacity: bytes)
    if let base { fields.initialize(from: base.fields, count: count) }
  }

  deinit { UnsafeMutableRawPointer(fields).deallocate() }

  func append(_ name: some Collection<UInt8>, _ value: some Collection<UInt8>) {
    let nameStart = free
    copy(name)
    let nameLength = free - nameStart
    for i in 0..<nameLength where nameStart[i] >= 65 && nameStart[i] <= 90 { nameStart[i] |= 32 }
    let valueStart = free
    copy(value)
    let flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
    (fields + count).initialize(
      to: nghttp2_nv(
        name: nameStart, value: valueStart, namelen: nameLength, valuelen: free - valueStart,
        flags: UInt8(flags)))
    count += 1
    size += nameLength + (free - valueStart) + 32
    // ":status", told from ":scheme" by its third byte.
    if nameLength == 7, nameStart[0] == UInt8(ascii: ":"), nameStart[2] == UInt8(ascii: "t"),
      valueStart < free
    {
      isInformational = valueStart[0] == UInt8(ascii: "1")
    }
  }

  private func copy(_ bytes: some Collection<UInt8>) {
    let done: Void? = bytes.withContiguousStorageIfAvailable { source in
      if let start = source.baseAddress { free.update(from: start, count: source.count) }
      free += source.count
    }
    if done == nil {
      for byte in bytes {
        free.pointee = byte
        free += 1
      }
    }
  }
}
