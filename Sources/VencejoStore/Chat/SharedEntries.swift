import Synchronization
import VencejoCrypto
import VencejoSQLite

/// A message of the log as all its readers see it but those of whom something is kept: rendered
/// once for many who read the same stretch.
package final class SharedEntry: Sendable {
  /// What the message was when the chat's newest event was at `lastPosition`.
  let message: StoredMessage
  let lastPosition: Int64
  /// When it was rendered.
  let time: Int64
  private let made = Mutex<[Bool: any Sendable]>([:])

  init(_ message: StoredMessage, lastPosition: Int64, time: Int64) {
    self.message = message
    self.lastPosition = lastPosition
    self.time = time
  }

  /// What a layer above makes of it, once for each of two kinds.
  package func made<R: Sendable>(_ kind: Bool, _ make: () -> R) -> R {
    if let known = made.withLock({ $0[kind] }), let known = known as? R { return known }
    // Twice at worst, when two ask at once.
    let new = make()
    made.withLock { $0[kind] = new }
    return new
  }
}

/// The entries that readers of the log came by last, by position. Thousands come again at once with
/// the same old token when a server was away.
///
/// An entry is good until something happens in its chat: the rows it was rendered from have not
/// changed, and what changes by the clock alone is not kept here.
final class SharedEntries: Sendable {
  private let entries = Mutex<[Int64: SharedEntry]>([:])

  /// Microseconds: what is made of an entry has resume tokens in it, which age, and retention
  /// takes messages away without an event.
  private static let lifetime: Int64 = 60 * 1_000_000
  /// Beyond it all are forgotten, rather than kept in an order of use.
  private static let capacity = 2048
  private static let textBytes = 2048

  func entry(_ position: Int64, lastPosition: Int64, now: Int64) -> SharedEntry? {
    entries.withLock { entries in
      guard let entry = entries[position], entry.lastPosition == lastPosition,
        (0...Self.lifetime).contains(now - entry.time)
      else { return nil }
      return entry
    }
  }

  /// Keeps a message if it is the same for everybody.
  func keep(_ message: StoredMessage, _ position: Int64, lastPosition: Int64, now: Int64)
    -> SharedEntry?
  {
    guard case .text(let text, _) = message.body, text.utf8.count <= Self.textBytes,
      message.reactions.isEmpty, message.quote == nil, message.expireTime == nil,
      !message.isPinned, !message.isStarred
    else { return nil }
    let entry = SharedEntry(message, lastPosition: lastPosition, time: now)
    entries.withLock { entries in
      if entries.count >= Self.capacity { entries.removeAll(keepingCapacity: true) }
      entries[position] = entry
    }
    return entry
  }
}

/// What one reader must be asked before an entry is theirs too.
struct SharedReading {
  struct Chat {
    /// Nothing from this sequence on is hidden from the reader, or theirs alone.
    let from: Int64
    let lastPosition: Int64
  }

  let entries: SharedEntries
  /// Whose messages some may be missing of.
  let everBlocked: Set<Int64>
  /// Those asked for so far; nil for one the reader is not in now.
  var chats: [Int64: Chat?] = [:]
}

extension ReadTransaction {
  /// A new message of a chat as `user` sees it, from what others were shown where that is the same.
  func newMessage(
    _ event: Scanned, for user: Int64, _ only: Set<UUID>?, _ reading: inout SharedReading?
  ) throws(StoreError) -> (message: StoredMessage, shared: SharedEntry?)? {
    var keys = KeysetReader(event.keys)
    guard let chat = event.chatID, only?.contains(chat) ?? true, let sequence = keys.int() else {
      return nil
    }
    func own() throws(StoreError) -> StoredMessage? {
      try messages(event.chat, chat, reader: user, "AND m.seq = ?4", [sequence]).first
    }
    guard let place = try place(event.chat, of: user, &reading), sequence >= place.from,
      let blocked = reading?.everBlocked, let entries = reading?.entries
    else { return try own().map { ($0, nil) } }
    func isPlain(_ message: StoredMessage) -> Bool {
      message.senderKey != user && !(message.senderKey.map(blocked.contains) ?? false)
    }
    if let entry = entries.entry(event.position, lastPosition: place.lastPosition, now: now),
      isPlain(entry.message)
    {
      return (entry.message, entry)
    }
    guard let message = try own() else { return nil }
    guard isPlain(message) else { return (message, nil) }
    return (
      message, entries.keep(message, event.position, lastPosition: place.lastPosition, now: now)
    )
  }

  private func place(_ chat: Int64, of user: Int64, _ reading: inout SharedReading?)
    throws(StoreError) -> SharedReading.Chat?
  {
    guard reading != nil else { return nil }
    if let place = reading?.chats[chat] { return place }
    let place = try first(
      """
      SELECT max(m.visible_from,
          ifnull((SELECT max(last_seq) + 1 FROM message_hidden
            WHERE user_id = ?1 AND chat_id = ?2), 0),
          ifnull((SELECT max(seq) + 1 FROM star WHERE user_id = ?1 AND chat_id = ?2), 0)),
        c.last_pos
      FROM member m JOIN chat c USING (chat_id)
      WHERE m.user_id = ?1 AND m.chat_id = ?2 AND m.state = 1
      """, user, chat
    ) { SharedReading.Chat(from: $0.int(0), lastPosition: $0.int(1)) }
    reading?.chats[chat] = .some(place)
    return place
  }
}
