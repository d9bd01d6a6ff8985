import CNGHTTP2
import Glibc

/// The memory of a loop's nghttp2 sessions. A call takes eight small blocks and gives
/// them back; with hundreds of calls on their way malloc's cache of seven blocks a
/// size is no help and its slow path was a tenth of all CPU. Here freed blocks wait in
/// a list for their size, without a lock, as only the loop's thread comes.
struct SessionMemory {
  /// Freed blocks of one size.
  struct Bin {
    var head: UnsafeMutableRawPointer?
    var count = 0
  }

  /// Bin `n` has blocks of `n * step` bytes; larger ones are malloc's.
  private static let step = 16
  private static let binCount = 65
  /// What a bin keeps at most.
  private static let kept = 1_024
  /// Before each block: the number of its bin, 0 for malloc's. Nothing of nghttp2's is aligned
  /// to more.
  private static let prefix = 8

  private let bins: UnsafeMutablePointer<Bin>

  init() {
    bins = .allocate(capacity: Self.binCount)
    bins.initialize(repeating: Bin(), count: Self.binCount)
  }

  /// To be called when the last session is gone.
  func destroy() {
    empty()
    bins.deallocate()
  }

  /// Gives all that waits back to malloc: a few small blocks keep their pages from the system.
  func empty() {
    for n in 0..<Self.binCount {
      while let block = bins[n].head {
        bins[n].head = block.load(as: UnsafeMutableRawPointer?.self)
        Glibc.free(block - Self.prefix)
      }
      bins[n].count = 0
    }
  }

  /// For `nghttp2_session_server_new3`, which copies it.
  var functions: nghttp2_mem {
    nghttp2_mem(
      mem_user_data: UnsafeMutableRawPointer(bins),
      malloc: { size, user in SessionMemory.take(size, user) },
      free: { block, user in SessionMemory.give(block, user) },
      calloc: { count, size, user in
        let (total, overflow) = count.multipliedReportingOverflow(by: size)
        guard !overflow, let block = SessionMemory.take(total, user) else { return nil }
        memset(block, 0, total)
        return block
      },
      realloc: { block, size, user in SessionMemory.resize(block, size, user) })
  }

  private static func take(
    _ size: Int, _ user: UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer? {
    guard size >= 0, size < 1 << 40, let user else { return nil }
    let n = max((size &+ step &- 1) / step, 1)
    guard n < binCount else { return fresh(size, bin: 0) }
    let bin = user.assumingMemoryBound(to: Bin.self) + n
    guard let block = bin.pointee.head else { return fresh(n &* step, bin: n) }
    bin.pointee.head = block.load(as: UnsafeMutableRawPointer?.self)
    bin.pointee.count &-= 1
    return block
  }

  private static func fresh(_ size: Int, bin: Int) -> UnsafeMutableRawPointer? {
    guard let memory = Glibc.malloc(size &+ prefix) else { return nil }
    memory.storeBytes(of: bin, as: Int.self)
    return memory + prefix
  }

  private static func give(_ block: UnsafeMutableRawPointer?, _ user: UnsafeMutableRawPointer?) {
    guard let block, let user else { return }
    let n = (block - prefix).load(as: Int.self)
    let bin = user.assumingMemoryBound(to: Bin.self) + n
    if n == 0 || bin.pointee.count >= kept {
      Glibc.free(block - prefix)
    } else {
      block.storeBytes(of: bin.pointee.head, as: UnsafeMutableRawPointer?.self)
      bin.pointee.head = block
      bin.pointee.count &+= 1
    }
  }

  private static func resize(
    _ block: UnsafeMutableRawPointer?, _ size: Int, _ user: UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer? {
    guard let block else { return take(size, user) }
    guard size >= 0, size < 1 << 40 else { return nil }
    let n = (block - prefix).load(as: Int.self)
    if n == 0 {
      guard let memory = Glibc.realloc(block - prefix, size &+ prefix) else { return nil }
      return memory + prefix
    }
    if size <= n &* step { return block }
    guard let larger = take(size, user) else { return nil }
    memcpy(larger, block, n &* step)
    give(block, user)
    return larger
  }
}
