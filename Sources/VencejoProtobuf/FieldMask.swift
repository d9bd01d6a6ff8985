// Masks as sets of paths: what a mask names, it names with all beneath it.

extension Google.FieldMask {
  /// A mask of paths in their original spelling, for example `display_name`.
  public init(_ paths: String...) { self.init(paths: paths) }

  /// Whether the mask names the path or something around it.
  public func covers(_ path: String) -> Bool {
    paths.contains { Self.covers($0, path) }
  }

  private static func covers(_ outer: String, _ path: String) -> Bool {
    let outer = outer.utf8
    let path = path.utf8
    guard path.starts(with: outer) else { return false }
    let rest = path.dropFirst(outer.count)
    return rest.isEmpty || rest.first == UInt8(ascii: ".")
  }

  /// The mask that covers the same in the fewest paths, sorted: what another path covers is not
  /// named again.
  public func normalized() -> Self {
    var result: [String] = []
    // In the order of their segments, everything beneath a path follows it directly.
    for path in paths.sorted(by: Self.precedes) {
      if let last = result.last, Self.covers(last, path) { continue }
      result.append(path)
    }
    return Self(paths: result)
  }

  private static func precedes(_ left: String, _ right: String) -> Bool {
    let dot = UInt8(ascii: ".")
    return left.utf8.split(separator: dot, omittingEmptySubsequences: false)
      .lexicographicallyPrecedes(
        right.utf8.split(separator: dot, omittingEmptySubsequences: false)
      ) { $0.lexicographicallyPrecedes($1) }
  }

  /// What either mask covers, normalized.
  public func union(_ other: Self) -> Self { Self(paths: paths + other.paths).normalized() }

  /// What both masks cover, normalized.
  public func intersection(_ other: Self) -> Self {
    Self(paths: paths.filter(other.covers) + other.paths.filter(covers)).normalized()
  }

  /// The paths of this mask, normalized, without those the other covers. What the other names
  /// beneath one of ours stays: a mask can name no exception.
  public func subtracting(_ other: Self) -> Self {
    Self(paths: paths.filter { !other.covers($0) }).normalized()
  }
}
