public import VencejoCrypto
import VencejoSQLite

/// How far somebody got with one message. Times are when their marker passed it.
public struct Receipt: Sendable, Hashable {
  public let user: UUID
  public let deliverTime: Int64?
  public let readTime: Int64?
}

public struct ReceiptPage: Sendable {
  public let receipts: [Receipt]
  public let nextPageToken: String
}

private enum MarkerKind {
  static let delivered: Int64 = 1
  static let read: Int64 = 2
}

extension WriteTransaction {
  /// Moves the caller's marker forward, never back and never past the newest message.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `BAD_SEQUENCE`.
  public func markRead(_ chat: UUID, upTo sequence: Int64, isPrivate: Bool, by user: Int64)
    throws(StoreError) -> (unread: UnreadState, readSequence: Int64)
  {
    guard sequence >= 0 else {
      throw .invalid("up_to_sequence", "BAD_SEQUENCE", "a sequence is not negative")
    }
    let place = try place(chat, of: user)
    let target = max(place.readSequence, min(sequence, place.upperEnd))
    let moved = target > place.readSequence
    let delivered = max(place.deliveredSequence, target)
    // A marker moved in private may be shown later.
    let tells = try tellsReceipts(place)
    let hides = try hidesReceipts(user)
    let shows = !isPrivate && target > place.shownSequence && tells && !hides
    let shown = shows ? target : place.shownSequence
    if moved || shown > place.shownSequence || delivered > place.deliveredSequence {
      try run(
        """
        UPDATE member SET read_seq = ?, shown_seq = ?, delivered_seq = ?
        WHERE chat_id = ? AND user_id = ?
        """, target, shown, delivered, place.chat, user)
    }
    if shows {
      try noteMove(place, MarkerKind.read, target)
      if delivered > place.deliveredSequence {
        try noteMove(place, MarkerKind.delivered, delivered)
      }
      try appendReceipt(place, read: target, delivered: delivered)
    } else if delivered > place.deliveredSequence, tells {
      try noteMove(place, MarkerKind.delivered, delivered)
      try appendReceipt(place, read: 0, delivered: delivered)
    }
    let unmarked = try unmarkUnread(place)
    if unmarked || moved {
      appendUnreadChanged(chat: place.chat, user: user, read: target, last: place.upperEnd)
    }
    return (try unread(place.chat, user, after: target, to: place.upperEnd), target)
  }

  /// Moves the markers of what the caller's devices have received.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `BAD_SEQUENCE`, `LIMIT_EXCEEDED` above 1,000 chats.
  public func markDelivered(_ markers: [(chat: UUID, sequence: Int64)], by user: Int64)
    throws(StoreError)
  {
    guard markers.count <= 1000 else { throw ChatLimits.exceeded("markers", 1000) }
    for marker in markers {
      guard marker.sequence >= 0 else {
        throw .invalid("markers.up_to_sequence", "BAD_SEQUENCE", "a sequence is not negative")
      }
      let place = try place(marker.chat, of: user)
      try markDelivered(place, min(marker.sequence, place.upperEnd))
    }
  }

  /// What a live stream handed to a device of the user's; chats that are gone do not matter.
  public func markDelivered(live markers: [UUID: Int64], by user: Int64) throws(StoreError) {
    for (chat, sequence) in markers.sorted(by: { $0.key < $1.key }) {
      let place: Place
      do throws(StoreError) { place = try self.place(chat, of: user) } catch { continue }
      try markDelivered(place, min(sequence, place.upperEnd))
    }
  }

  private func markDelivered(_ place: Place, _ target: Int64) throws(StoreError) {
    guard target > place.deliveredSequence else { return }
    try run(
      "UPDATE member SET delivered_seq = ? WHERE chat_id = ? AND user_id = ?", target, place.chat,
      place.user)
    guard try tellsReceipts(place) else { return }
    try noteMove(place, MarkerKind.delivered, target)
    try appendReceipt(place, read: 0, delivered: target)
  }

  private func noteMove(_ place: Place, _ kind: Int64, _ sequence: Int64) throws(StoreError) {
    try run(
      """
      INSERT OR IGNORE INTO marker_move(chat_id, user_id, kind, seq, move_us)
      VALUES (?, ?, ?, ?, ?)
      """, place.chat, place.user, kind, sequence, now)
  }

  private func appendReceipt(_ place: Place, read: Int64, delivered: Int64) throws(StoreError) {
    guard let id = try userID(place.user) else { return }
    var keys = KeysetWriter()
    keys.raw(id.bytes)
    keys.int(read)
    keys.int(delivered)
    try appendShared(
      .receiptMoved, chat: place.chat, keys,
      SharedEvent(
        event: .receiptMoved(
          ReceiptMarker(chat: place.chatID, user: id, read: read, delivered: delivered)),
        author: place.user, reader: read > 0 ? place.user : nil))
  }
}

extension ReadTransaction {
  /// Whether others hear of the member's markers at all: in small chats, by members, and never
  /// by one who blocks the other.
  fileprivate func tellsReceipts(_ place: Place) throws(StoreError) -> Bool {
    guard place.isMember, place.kind == .direct || place.kind == .group,
      place.memberCount <= ChatLimits.receiptMembers
    else { return false }
    return try !blocksPeer(place)
  }

  public func hidesReceipts(_ user: Int64) throws(StoreError) -> Bool {
    try first("SELECT hides_receipts FROM user WHERE user_id = ?", user) { $0.bool(0) } ?? false
  }

  /// Who received and who read a message of the caller's.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `NOT_THE_SENDER`, `TOO_MANY_MEMBERS`,
  ///   `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listReceipts(
    _ id: UUID, in chat: UUID, pageSize: Int32 = 0, pageToken: String = "", for user: Int64
  ) throws(StoreError) -> ReceiptPage {
    let size = try ChatLimits.page(pageSize)
    let place = try place(chat, of: user)
    let message = try message(id, place)
    guard message.senderKey == user else { throw WriteTransaction.notTheSender }
    guard place.kind != .channel, place.memberCount <= ChatLimits.receiptMembers else {
      throw StoreError(
        .failedPrecondition, "TOO_MANY_MEMBERS",
        "receipts are kept in chats of up to \(ChatLimits.receiptMembers) members",
        metadata: ["limit": String(ChatLimits.receiptMembers)])
    }
    var arguments = KeysetWriter()
    arguments.text("ListReceipts")
    arguments.int(user)
    arguments.raw(id.bytes)
    var after: Int64 = 0
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let key = keyset.int() else { throw TokenAuthority.badPageToken }
      after = key
    }
    let found = try all(
      """
      SELECT u.user_id, u.uuid,
        (SELECT min(move_us) FROM marker_move v WHERE v.chat_id = m.chat_id
          AND v.user_id = m.user_id AND v.kind = 1 AND v.seq >= ?3),
        CASE WHEN u.hides_receipts OR (SELECT hides_receipts FROM user WHERE user_id = ?2)
        THEN NULL ELSE
          (SELECT min(move_us) FROM marker_move v WHERE v.chat_id = m.chat_id
            AND v.user_id = m.user_id AND v.kind = 2 AND v.seq >= ?3) END
      FROM member m JOIN user u USING (user_id)
      WHERE m.chat_id = ?1 AND m.user_id <> ?2 AND m.state = 1 AND m.user_id > ?4
        AND m.visible_from <= ?3
      ORDER BY m.user_id LIMIT ?5
      """, place.chat, user, message.sequence, after, size + 1
    ) { row in
      row.uuid(1).map {
        (
          row.int(0),
          Receipt(
            user: $0, deliverTime: row.optionalInt(2), readTime: row.optionalInt(3))
        )
      }
    }.compactMap(\.self)
    var next = ""
    if found.count > size, let last = found.prefix(size).last {
      var keyset = KeysetWriter()
      keyset.int(last.0)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return ReceiptPage(receipts: found.prefix(size).map(\.1), nextPageToken: next)
  }
}
