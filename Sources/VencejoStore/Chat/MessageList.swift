public import VencejoCrypto
import VencejoSQLite

/// Where a page of messages starts.
public enum MessageAnchor: Sendable, Hashable {
  case newest
  /// Exclusive.
  case before(Int64)
  /// Exclusive.
  case after(Int64)
  case around(Int64)
  /// The reader's first unread message, with some before it.
  case firstUnread
  /// The first message at or after this time, microseconds since the Unix epoch.
  case time(Int64)
}

/// A page of messages, ascending; the tokens continue in either direction and are empty where
/// nothing more is.
public struct MessagePage: Sendable, Hashable {
  public let messages: [StoredMessage]
  public let olderToken: String
  public let newerToken: String
  /// Sequences inside the page that are not there for the reader, so that nobody asks again.
  public let deletedRanges: [SequenceRange]
}

extension ReadTransaction {
  /// A page of a chat's messages.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listMessages(
    _ chat: UUID, pageSize: Int32 = 0, pageToken: String = "", anchor: MessageAnchor = .newest,
    for user: Int64
  ) throws(StoreError) -> MessagePage {
    let size = try ChatLimits.page(pageSize)
    let place = try place(chat, of: user)
    var arguments = KeysetWriter()
    arguments.text("ListMessages")
    arguments.int(user)
    arguments.raw(chat.bytes)

    var anchor = anchor
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let direction = keyset.int(), let sequence = keyset.int() else {
        throw TokenAuthority.badPageToken
      }
      anchor = direction < 0 ? .before(sequence) : .after(sequence)
    }
    let (found, gap) = try window(place, anchor, size, user)
    let messages = try marked(
      found, chat: place.chat, reader: user, memberCount: place.memberCount)

    // An empty page still has both its sides: `gap` is the sequence it would begin with.
    let oldest = messages.first?.sequence ?? gap
    let newest = messages.last?.sequence ?? gap - 1
    let hasOlder = try exists(place, .before, oldest)
    let hasNewer = try exists(place, .after, newest)
    func token(_ direction: Int64, _ sequence: Int64) -> String {
      var keyset = KeysetWriter()
      keyset.int(direction)
      keyset.int(sequence)
      return tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    // A page that begins behind a token explains the hole between.
    var low = hasOlder ? oldest : place.visibleFrom
    var high = hasNewer ? newest : place.upperEnd
    if case .after(let sequence) = anchor, sequence < low, sequence >= place.visibleFrom - 1 {
      low = sequence + 1
    }
    if case .before(let sequence) = anchor, sequence > high, sequence <= place.upperEnd + 1 {
      high = sequence - 1
    }
    return MessagePage(
      messages: messages, olderToken: hasOlder ? token(-1, oldest) : "",
      newerToken: hasNewer ? token(1, newest) : "",
      deletedRanges: Self.holes(messages.map(\.sequence), from: low, to: high))
  }

  private func exists(_ place: Place, _ range: MessageRange, _ sequence: Int64) throws(StoreError)
    -> Bool
  {
    var found = false
    try each(
      dynamic: "SELECT 1 \(Self.visibleMessages(range)) LIMIT 1",
      [place.user, place.chat, now, sequence]
    ) { _ in
      found = true
      return false
    }
    return found
  }

  /// What is missing of `low...high` in ascending sequences.
  private static func holes(_ sequences: [Int64], from low: Int64, to high: Int64)
    -> [SequenceRange]
  {
    var holes: [SequenceRange] = []
    var next = low
    for sequence in sequences {
      if sequence > next { holes.append(SequenceRange(next, sequence - 1)) }
      next = sequence + 1
    }
    if next <= high { holes.append(SequenceRange(next, high)) }
    return holes
  }

  private func window(_ place: Place, _ anchor: MessageAnchor, _ size: Int, _ user: Int64)
    throws(StoreError) -> (messages: [StoredMessage], gap: Int64)
  {
    // Clamped before any arithmetic: these come from outside.
    func clamp(_ sequence: Int64) -> Int64 {
      min(max(sequence, place.visibleFrom - 1), place.upperEnd + 1)
    }
    func both(_ sequence: Int64, before: Int) throws(StoreError) -> [StoredMessage] {
      let older = try older(place, than: sequence, before)
      return try older + newer(place, than: sequence - 1, size - older.count)
    }
    switch anchor {
    case .newest:
      return (try older(place, than: place.upperEnd + 1, size), place.upperEnd + 1)
    case .before(let sequence):
      let end = max(clamp(sequence), place.visibleFrom)
      return (try older(place, than: end, size), end)
    case .after(let sequence):
      let start = min(clamp(sequence), max(place.upperEnd, place.visibleFrom - 1))
      return (try newer(place, than: start, size), start + 1)
    case .around(let sequence):
      let middle = clamp(sequence)
      return (try both(middle, before: size / 2), middle)
    case .firstUnread:
      let unread = try unread(
        place.chat, user, after: max(place.readSequence, place.visibleFrom - 1),
        to: place.upperEnd)
      guard unread.count > 0 else { return try window(place, .newest, size, user) }
      return (try both(unread.firstSequence, before: size / 3), unread.firstSequence)
    case .time(let time):
      let sequence = try firstSequence(place, notBefore: time)
      guard sequence <= place.upperEnd else { return try window(place, .newest, size, user) }
      return (try newer(place, than: sequence - 1, size), sequence)
    }
  }

  private func older(_ place: Place, than sequence: Int64, _ limit: Int) throws(StoreError)
    -> [StoredMessage]
  {
    try messages(
      place.chat, place.chatID, reader: place.user, in: .before,
      "ORDER BY m.seq DESC LIMIT ?5", [sequence, limit]
    ).reversed()
  }

  private func newer(_ place: Place, than sequence: Int64, _ limit: Int) throws(StoreError)
    -> [StoredMessage]
  {
    try messages(
      place.chat, place.chatID, reader: place.user, in: .after, "ORDER BY m.seq LIMIT ?5",
      [sequence, limit])
  }

  /// Times grow with sequences, so halving finds the place without an index over times.
  private func firstSequence(_ place: Place, notBefore time: Int64) throws(StoreError) -> Int64 {
    var low = place.visibleFrom
    var high = place.upperEnd + 1
    while low < high {
      let middle = low + (high - low) / 2
      let sent = try first(
        "SELECT sent_us FROM message WHERE chat_id = ? AND seq = ?", place.chat, middle
      ) { $0.int(0) }
      if let sent, sent < time { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The newest messages of a chat, ascending, for a snapshot.
  func newestMessages(_ chat: ChatView, _ limit: Int, for user: Int64) throws(StoreError)
    -> [StoredMessage]
  {
    let found = try messages(
      chat.key, chat.id, reader: user, in: .upTo, "ORDER BY m.seq DESC LIMIT ?5",
      [chat.lastSequence, limit])
    return try marked(
      found.reversed(), chat: chat.key, reader: user, memberCount: chat.memberCount)
  }
}
