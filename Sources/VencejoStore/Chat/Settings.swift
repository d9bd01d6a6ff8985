public import VencejoCrypto
import VencejoSQLite

/// Which settings an update replaces.
public struct SettingFields: OptionSet, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }

  public static let mute = SettingFields(rawValue: 1)
  public static let archived = SettingFields(rawValue: 2)
  public static let pinRank = SettingFields(rawValue: 4)
  public static let markedUnread = SettingFields(rawValue: 8)
  public static let mentionsOnly = SettingFields(rawValue: 16)
  public static let draft = SettingFields(rawValue: 32)
}

extension ReadTransaction {
  func settings(_ chat: Int64, _ user: Int64) throws(StoreError) -> ChatSettings {
    try first(
      """
      SELECT mute_us, is_archived, pin_rank, is_marked_unread, mentions_only, draft_kind,
        draft_body, draft_content, draft_reply, draft_us, version
      FROM chat_setting WHERE user_id = ? AND chat_id = ?
      """, user, chat
    ) { ChatSettings($0, 0) } ?? ChatSettings()
  }
}

extension ChatSettings {
  /// From eleven columns of a row, all NULL where nothing was set.
  init(_ row: Row, _ at: Int) {
    self.init()
    guard !row.isNull(at + 10) else { return }
    muteUntil = row.optionalInt(at)
    isArchived = row.bool(at + 1)
    pinRank = row.int(at + 2)
    isMarkedUnread = row.bool(at + 3)
    mentionsOnly = row.bool(at + 4)
    if let kind = row.optionalInt(at + 5),
      let body = BodyColumns(
        kind: kind, words: row.text(at + 6), content: row.optionalBlob(at + 7)
      ).body
    {
      draft = Draft(body: body, replyTo: row.uuid(at + 8))
      draft?.updateTime = row.int(at + 9)
    }
    version = row.int(at + 10)
  }
}

extension WriteTransaction {
  /// Changes the caller's own view of a chat, on all their devices.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `BAD_PIN_RANK`, `ETAG_MISMATCH`, `MESSAGE_TOO_LONG`.
  public func updateSettings(
    _ chat: UUID, _ new: ChatSettings, _ fields: SettingFields, etag: String = "",
    by user: Int64
  ) throws(StoreError) -> ChatSettings {
    let place = try place(chat, of: user)
    let old = try settings(place.chat, user)
    try check(etag, old.version)
    var settings = old
    if fields.contains(.mute) { settings.muteUntil = new.muteUntil }
    if fields.contains(.archived) { settings.isArchived = new.isArchived }
    if fields.contains(.pinRank) {
      guard (0...1000).contains(new.pinRank) else {
        throw .invalid("settings.pin_rank", "BAD_PIN_RANK", "a rank is from 0 to 1000")
      }
      settings.pinRank = new.pinRank
    }
    if fields.contains(.markedUnread) { settings.isMarkedUnread = new.isMarkedUnread }
    if fields.contains(.mentionsOnly) { settings.mentionsOnly = new.mentionsOnly }
    if fields.contains(.draft) {
      settings.draft = new.draft
      // What cannot be sent is no draft either; but one may be blank.
      if case .text(let text, _)? = new.draft?.body, AccountRules.isBlank(text) {
        settings.draft = nil
      }
      try settings.draft?.body.validate()
      let isSame =
        settings.draft?.body == old.draft?.body && settings.draft?.replyTo == old.draft?.replyTo
      settings.draft?.updateTime = isSame ? old.draft?.updateTime ?? now : now
    }
    guard settings != old else { return old }
    try store(settings, place)
    return try self.settings(place.chat, user)
  }

  private func store(_ settings: ChatSettings, _ place: Place) throws(StoreError) {
    let draft = settings.draft.map { BodyColumns($0.body) }
    try run(
      """
      INSERT OR REPLACE INTO chat_setting(user_id, chat_id, mute_us, is_archived, pin_rank,
        is_marked_unread, mentions_only, draft_kind, draft_body, draft_content, draft_reply,
        draft_us, version)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, place.user, place.chat, settings.muteUntil, settings.isArchived, settings.pinRank,
      settings.isMarkedUnread, settings.mentionsOnly, draft?.kind, draft?.words ?? "",
      draft?.content, settings.draft?.replyTo, settings.draft?.updateTime, settings.version + 1)
    var keys = KeysetWriter()
    keys.int(place.chat)
    append(.settingsChanged, user: place.user, keys: keys.bytes)
  }

  /// Reading takes the mark "unread" away. Answers whether there was one.
  @discardableResult
  func unmarkUnread(_ place: Place) throws(StoreError) -> Bool {
    var settings = try settings(place.chat, place.user)
    guard settings.isMarkedUnread else { return false }
    settings.isMarkedUnread = false
    try store(settings, place)
    return true
  }
}
