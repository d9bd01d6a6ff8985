import Glibc

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
          return
        }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
      }
    }
  }
}
