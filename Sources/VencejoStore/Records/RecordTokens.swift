extension TokenAuthority {
  /// A token for fetching a zone's changes after `position`; `since` as ``ZoneChanges/since``.
  public func changeToken(
    _ zone: ZoneID, position: Int64, since: Int64? = nil, now: Int64
  ) -> String {
    resumeToken(.record, position: position, since: since, now: now, binding: Self.binding(zone))
  }

  /// A token of a whole database, as a query gives it out: good for fetching the
  /// changes of each of its zones and for any subscription on it.
  public func databaseToken(_ database: DatabaseID, position: Int64, now: Int64) -> String {
    resumeToken(.record, position: position, now: now, binding: Self.binding(database))
  }

  /// The position of a token of a whole database; 0, the beginning, of an empty one.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED`, `TOKEN_MISMATCH`.
  public func position(
    ofDatabaseToken text: String, _ database: DatabaseID, now: Int64
  ) throws(StoreError) -> Int64 {
    guard !text.isEmpty else { return 0 }
    do throws(Refusal) {
      return try position(of: text, bindings: [Self.binding(database)], now: now)
    } catch {
      switch error {
      case .expired, .otherHistory: throw .changeTokenExpired
      case .forged, .mismatch:
        throw .invalid(
          "change_token", "TOKEN_MISMATCH", "the change token was not given out for \(database)")
      }
    }
  }

  /// A token for fetching which zones of a database changed after `position`: good for that only.
  public func databaseChangeToken(
    _ database: DatabaseID, position: Int64, now: Int64
  ) -> String {
    resumeToken(
      .record, position: position, now: now, binding: Self.binding("zones", database.name))
  }

  /// The position of such a token; 0, the beginning, of an empty one.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED`, `TOKEN_MISMATCH`.
  public func position(
    ofDatabaseChangeToken text: String, _ database: DatabaseID, now: Int64
  ) throws(StoreError) -> Int64 {
    guard !text.isEmpty else { return 0 }
    do throws(Refusal) {
      return try position(of: text, bindings: [Self.binding("zones", database.name)], now: now)
    } catch {
      switch error {
      case .expired, .otherHistory: throw .changeTokenExpired
      case .forged, .mismatch:
        throw .invalid(
          "change_token", "TOKEN_MISMATCH",
          "the change token was not given out for the zones of \(database)")
      }
    }
  }

  /// A token for fetching which zones of others changed for a user.
  public func sharedToken(
    container: String, user: String, position: Int64, now: Int64
  ) -> String {
    resumeToken(
      .record, position: position, now: now,
      binding: Self.binding("shared", "\(container)/\(user)"))
  }

  /// The position of such a token; 0, the beginning, of an empty one.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED`, `TOKEN_MISMATCH`.
  public func position(
    ofSharedToken text: String, container: String, user: String, now: Int64
  ) throws(StoreError) -> Int64 {
    guard !text.isEmpty else { return 0 }
    do throws(Refusal) {
      return try position(
        of: text, bindings: [Self.binding("shared", "\(container)/\(user)")], now: now)
    } catch {
      switch error {
      case .expired, .otherHistory: throw .changeTokenExpired
      case .forged, .mismatch:
        throw .invalid(
          "change_token", "TOKEN_MISMATCH",
          "the change token was not given out for this user's shared database")
      }
    }
  }

  /// A token of a subscription.
  public func subscriptionToken(_ feed: RecordFeed, position: Int64, now: Int64) -> String {
    resumeToken(.record, position: position, now: now, binding: Self.binding(feed))
  }

  /// The position of a change token; 0, the beginning, of an empty one.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED`, `TOKEN_MISMATCH`.
  public func position(
    ofChangeToken text: String, _ zone: ZoneID, now: Int64
  ) throws(StoreError) -> Int64 {
    try place(ofChangeToken: text, zone, now: now).position
  }

  /// The same with ``ZoneChanges/since``.
  public func place(
    ofChangeToken text: String, _ zone: ZoneID, now: Int64
  ) throws(StoreError) -> (position: Int64, since: Int64) {
    guard !text.isEmpty else { return (0, 0) }
    do throws(Refusal) {
      return try place(
        of: text, bindings: [Self.binding(zone), Self.binding(zone.database)], now: now)
    } catch {
      switch error {
      // After a restore from a backup the positions mean something else.
      case .expired, .otherHistory: throw .changeTokenExpired
      case .forged, .mismatch:
        throw .invalid(
          "change_token", "TOKEN_MISMATCH", "the change token was not given out for \(zone)")
      }
    }
  }

  /// The position of a subscription's token, or of one of its database.
  public func position(
    ofSubscriptionToken text: String, _ feed: RecordFeed, now: Int64
  ) throws(Refusal) -> Int64 {
    try position(
      of: text, bindings: [Self.binding(feed), Self.binding(feed.database)], now: now)
  }

  private func position(
    of text: String, bindings: [[UInt8]], now: Int64
  ) throws(Refusal) -> Int64 {
    try place(of: text, bindings: bindings, now: now).position
  }

  private func place(
    of text: String, bindings: [[UInt8]], now: Int64
  ) throws(Refusal) -> (position: Int64, since: Int64) {
    for binding in bindings {
      do throws(Refusal) {
        return try place(ofResumeToken: text, .record, now: now, binding: binding)
      } catch {
        guard error == .mismatch else { throw error }
      }
    }
    throw .mismatch
  }

  private static func binding(_ zone: ZoneID) -> [UInt8] { binding("zone", zone.name) }
  private static func binding(_ database: DatabaseID) -> [UInt8] { binding("base", database.name) }

  private static func binding(_ kind: String, _ name: String) -> [UInt8] {
    var writer = KeysetWriter()
    writer.text(kind)
    writer.text(name)
    return writer.bytes
  }

  private static func binding(_ feed: RecordFeed) -> [UInt8] {
    var writer = KeysetWriter()
    writer.text("feed")
    writer.text(feed.database.name)
    writer.raw(feed.fingerprint)
    return writer.bytes
  }
}
