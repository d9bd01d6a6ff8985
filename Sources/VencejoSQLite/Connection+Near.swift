import CSQLite

extension Connection {
  /// Registers `vencejo_near(x, y, z, scope, low, high, farthest)` for R*-trees whose coordinates
  /// are x, y, z and a scope: it selects the boxes of that scope whose squared distance from a
  /// point may lie between two bounds, and hands them out nearest (or farthest) first. So a page
  /// of neighbours costs what the page holds, from any place in the order.
  ///
  /// The tree rounds coordinates outwards to 32 bits: what it answers is in order up to
  /// ``nearSlack``.
  func registerNear() throws(SQLiteError) {
    let code = sqlite3_rtree_query_callback(
      database, "vencejo_near", { info in Connection.near(info) }, nil, nil)
    guard code == SQLITE_OK else {
      throw SQLiteError(database, code: code, doing: "registering vencejo_near")
    }
  }

  /// How far out of order two neighbours may come, as a distance in a unit sphere's units: the
  /// diagonal of a box of 32-bit roundings, twice.
  public static let nearSlack = 1e-6

  private static func near(_ info: UnsafeMutablePointer<sqlite3_rtree_query_info>?) -> Int32 {
    guard let info, info.pointee.nParam == 7, info.pointee.nCoord == 8,
      let given = info.pointee.aParam, let box = info.pointee.aCoord
    else { return SQLITE_ERROR }
    var least = 0.0
    var most = 0.0
    for axis in 0..<3 {
      let below = Double(given[axis]) - Double(box[2 * axis])
      let above = Double(box[2 * axis + 1]) - Double(given[axis])
      let outside = max(0, max(-below, -above))
      let across = max(abs(below), abs(above))
      least += outside * outside
      most += across * across
    }
    let scope = Double(given[3])
    let isIn =
      Double(box[6]) <= scope && scope <= Double(box[7]) && least <= Double(given[5])
      && most >= Double(given[4])
    info.pointee.eWithin = isIn ? PARTLY_WITHIN : NOT_WITHIN
    // No two points of the unit sphere are farther apart than 2; boxes may be a little.
    info.pointee.rScore = given[6] == 0 ? least : 16 - most
    return SQLITE_OK
  }
}
