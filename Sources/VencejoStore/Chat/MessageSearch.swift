public import VencejoCrypto
import VencejoSQLite

/// A message that was found, and the place in it: matches lie between U+0002 and U+0003.
public struct SearchHit: Sendable, Hashable {
  public let message: StoredMessage
  public let snippet: String
}

public struct SearchPage: Sendable {
  public let hits: [SearchHit]
  public let nextPageToken: String
}

/// A query as people type it, in FTS5's language.
enum SearchQuery {
  static let byteLimit = 512
  static let wordLimit = 16

  /// Words, "quoted phrases", prefixes*, -exclusions; nil when nothing is asked for.
  ///
  /// - Throws: `LIMIT_EXCEEDED`: a word that is left out would find what was not asked for.
  static func match(_ text: String) throws(StoreError) -> String? {
    guard text.utf8.count <= byteLimit else {
      throw ChatLimits.exceeded("query", Int64(byteLimit))
    }
    var wanted: [String] = []
    var unwanted: [String] = []
    var rest = Substring(text)
    while let first = rest.first {
      if first.isWhitespace {
        rest.removeFirst()
        continue
      }
      let isUnwanted = first == "-"
      if isUnwanted { rest.removeFirst() }
      var term: Substring
      var isPrefix = false
      if rest.first == "\"" {
        rest.removeFirst()
        term = rest.prefix { $0 != "\"" }
        rest = rest.dropFirst(term.count + 1)
      } else {
        term = rest.prefix { !$0.isWhitespace && $0 != "\"" }
        rest = rest.dropFirst(term.count)
        while term.last == "*" {
          term.removeLast()
          isPrefix = true
        }
      }
      // What has no letter and no digit is no word to the index either: it would match nothing.
      guard term.unicodeScalars.contains(where: isWordScalar) else { continue }
      guard wanted.count + unwanted.count < wordLimit else {
        throw ChatLimits.exceeded("words of query", Int64(wordLimit))
      }
      // Inside quotes nothing means anything to FTS5; a quote itself is doubled.
      let quoted = "\"" + term.replacing("\"", with: "\"\"").replacing("\u{0}", with: " ") + "\""
      if isUnwanted {
        unwanted.append(quoted + (isPrefix ? "*" : ""))
      } else {
        wanted.append(quoted + (isPrefix ? "*" : ""))
      }
    }
    guard !wanted.isEmpty else { return nil }
    var match = wanted.joined(separator: " AND ")
    if !unwanted.isEmpty { match = "(\(match)) NOT (\(unwanted.joined(separator: " OR ")))" }
    return match
  }

  private static func isWordScalar(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
      .decimalNumber, .letterNumber, .otherNumber, .privateUse:
      true
    default: false
    }
  }
}

extension ReadTransaction {
  /// Chats a search is narrowed down to inside the index; with more of them, every hit is looked
  /// at.
  private static let scopeLimit = 200

  /// Messages the user may see that hold all the words, newest first.
  ///
  /// - Throws: `EMPTY_QUERY`, `LIMIT_EXCEEDED`, `CHAT_NOT_FOUND`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`,
  ///   `PAGE_TOKEN_MISMATCH`.
  public func searchMessages(
    _ query: String, chats only: [UUID] = [], pageSize: Int32 = 0, pageToken: String = "",
    for user: Int64
  ) throws(StoreError) -> SearchPage {
    let size = try ChatLimits.page(pageSize)
    guard let words = try SearchQuery.match(query) else {
      throw .invalid("query", "EMPTY_QUERY", "the query needs a word")
    }
    var arguments = KeysetWriter()
    arguments.text("SearchMessages")
    arguments.int(user)
    arguments.text(query)
    for chat in only { arguments.raw(chat.bytes) }
    var before = Int64.max
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let key = keyset.int() else { throw TokenAuthority.badPageToken }
      before = key
    }
    let chats = try searched(only, user)
    guard !chats.isEmpty else { return SearchPage(hits: [], nextPageToken: "") }
    var match = "body : (\(words))"
    if chats.count <= Self.scopeLimit {
      match += " AND scope : (\(chats.map { "c\($0)" }.joined(separator: " OR ")))"
    }
    let found = try hits(match, before: before, size + 1, user)
    var result: [SearchHit] = []
    for hit in found.prefix(size) {
      guard
        let message = try messages(
          hit.chat, hit.chatID, reader: user, "AND m.message_key = ?4", [hit.key]
        ).first
      else { continue }
      result.append(SearchHit(message: message, snippet: hit.snippet))
    }
    var next = ""
    if found.count > size, let last = found.prefix(size).last {
      var keyset = KeysetWriter()
      keyset.int(last.key)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return SearchPage(hits: result, nextPageToken: next)
  }

  /// The chats to search, or one more than it takes to search all.
  private func searched(_ only: [UUID], _ user: Int64) throws(StoreError) -> [Int64] {
    guard only.isEmpty else {
      guard only.count <= Self.scopeLimit else {
        throw ChatLimits.exceeded("chats", Int64(Self.scopeLimit))
      }
      var result: [Int64] = []
      for chat in Set(only) { result.append(try place(chat, of: user).chat) }
      return result
    }
    return try all(
      """
      SELECT c.chat_id FROM member m JOIN chat c USING (chat_id)
      WHERE m.user_id = ? AND c.delete_us IS NULL LIMIT ?
      """, user, Self.scopeLimit + 1
    ) { $0.int(0) }
  }

  /// The same filter as everywhere, inside the query: not even a count tells of messages one may
  /// not see.
  private func hits(_ match: String, before: Int64, _ limit: Int, _ user: Int64)
    throws(StoreError) -> [(key: Int64, chat: Int64, chatID: UUID, snippet: String)]
  {
    var result: [(key: Int64, chat: Int64, chatID: UUID, snippet: String)] = []
    try each(
      """
      SELECT f.rowid, m.chat_id, snippet(message_fts, 0, char(2), char(3), '…', 16), c.uuid
      FROM message_fts f CROSS JOIN message m ON m.message_key = f.rowid
        JOIN member me ON me.chat_id = m.chat_id AND me.user_id = ?1
        JOIN chat c ON c.chat_id = m.chat_id AND c.delete_us IS NULL
      WHERE message_fts MATCH ?2 AND f.rowid < ?4
        AND m.seq >= me.visible_from AND m.seq <= ifnull(me.visible_to, 9223372036854775807)
        AND m.delete_us IS NULL AND (m.expire_us IS NULL OR m.expire_us > ?3)
        AND NOT EXISTS (SELECT 1 FROM message_hidden h WHERE h.user_id = ?1
          AND h.chat_id = m.chat_id AND h.first_seq <= m.seq AND h.last_seq >= m.seq)
        AND NOT EXISTS (SELECT 1 FROM block b WHERE b.user_id = ?1 AND b.blocked_id = m.sender_id
          AND b.from_key < m.message_key AND (b.to_key IS NULL OR b.to_key >= m.message_key))
      ORDER BY f.rowid DESC LIMIT ?5
      """, [user, match, now, before, limit]
    ) { row in
      if let chat = row.uuid(3) { result.append((row.int(0), row.int(1), chat, row.text(2))) }
      return true
    }
    return result
  }
}
