import Glibc

/// A place as a point of the unit sphere. Distances become chords, which need
/// additions and multiplications only; those round alike in SQL and in Swift,
/// so that both agree on every place at the rim.
struct SpherePoint: Sendable, Hashable {
  /// IUGG mean radius, in metres.
  static let earthRadius = 6_371_008.8

  var x: Double
  var y: Double
  var z: Double

  init(x: Double, y: Double, z: Double) {
    self.x = x
    self.y = y
    self.z = z
  }

  init(_ place: RecordLocation) {
    let latitude = place.latitude * .pi / 180
    let longitude = place.longitude * .pi / 180
    x = cos(latitude) * cos(longitude)
    y = cos(latitude) * sin(longitude)
    z = sin(latitude)
  }

  /// The squared chord. The order of the operations is that of the SQL text.
  func squaredChord(to other: SpherePoint) -> Double {
    (x - other.x) * (x - other.x) + (y - other.y) * (y - other.y) + (z - other.z) * (z - other.z)
  }

  /// The squared chord that spans so many metres of a great circle.
  static func squaredChord(meters: Double) -> Double {
    let half = min(meters / (2 * earthRadius), .pi / 2)
    let chord = 2 * sin(half)
    return chord * chord
  }
}
