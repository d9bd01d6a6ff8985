import Glibc
import Synchronization

/// Where a command writes: results on standard output, everything else on standard error.
public struct Output: Sendable {
  let out: @Sendable (String) -> Void
  let error: @Sendable (String) -> Void

  public init(
    out: @escaping @Sendable (String) -> Void, error: @escaping @Sendable (String) -> Void
  ) {
    self.out = out
    self.error = error
  }

  /// The process's own descriptors.
  public static let standard = Output(
    out: { Self.write($0, to: 1) }, error: { Self.write($0, to: 2) })

  /// 0, or the `errno` that kept results from standard output: a full disk, not a reader that
  /// went away.
  public static var lostResults: Int32 { failure.load(ordering: .relaxed) }
  private static let failure = Atomic<Int32>(0)

  public func line(_ text: String) { out(text + "\n") }
  public func complain(_ text: String) { error(text + "\n") }

  private static func write(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let base = rest.baseAddress, !rest.isEmpty {
        let written = Glibc.write(descriptor, base, rest.count)
        if written < 0 {
          if errno == EINTR { continue }
          if descriptor == 1, errno != EPIPE { failure.store(errno, ordering: .relaxed) }
          return
        }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
      }
    }
  }
}
