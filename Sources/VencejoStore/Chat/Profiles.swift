public import VencejoCrypto
import VencejoSQLite

/// A page of people.
public struct ProfilePage: Sendable {
  public let profiles: [Profile]
  public let nextPageToken: String
}

extension ReadTransaction {
  /// What others see of a user.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func profile(_ user: UUID) throws(StoreError) -> Profile {
    Profile(try account(id: user))
  }

  /// All or nothing (AIP-231), in the order asked for.
  ///
  /// - Throws: `LIMIT_EXCEEDED` above 200, `USER_NOT_FOUND`.
  public func profiles(_ users: [UUID]) throws(StoreError) -> [Profile] {
    guard users.count <= 200 else {
      throw StoreError(
        .invalidArgument, "LIMIT_EXCEEDED", "at most 200 names at a time: split in half",
        metadata: ["limit": "200"], details: [.quota(subject: "names", description: "at most 200")])
    }
    var result: [Profile] = []
    for user in users { result.append(try profile(user)) }
    return result
  }

  /// People whose handle or display name begins with `query`, by handle.
  ///
  /// - Throws: `EMPTY_QUERY`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func searchProfiles(_ query: String, pageSize: Int32 = 0, pageToken: String = "")
    throws(StoreError) -> ProfilePage
  {
    let size = try ChatLimits.page(pageSize)
    var text = AccountRules.trimmed(query).lowercased()
    if text.hasPrefix("@") { text.removeFirst() }
    guard !text.isEmpty, text.utf8.count <= 256 else {
      throw .invalid("query", "EMPTY_QUERY", "the query needs 1 to 256 bytes")
    }
    var arguments = KeysetWriter()
    arguments.text("SearchProfiles")
    arguments.text(text)
    var after = ""
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let handle = keyset.text() else { throw TokenAuthority.badPageToken }
      after = handle
    }
    // Everything that begins with a text lies between it and it with the last scalar there is.
    let end = text + "\u{10FFFF}"
    let found = try accounts(
      """
      WHERE ((handle >= ?1 AND handle < ?2) OR (display_key >= ?1 AND display_key < ?2))
        AND handle > ?3 ORDER BY handle LIMIT ?4
      """, [text, end, after, size + 1])
    let page = found.prefix(size)
    var next = ""
    if found.count > size, let last = page.last {
      var keyset = KeysetWriter()
      keyset.text(last.handle)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return ProfilePage(profiles: page.map(Profile.init), nextPageToken: next)
  }
}

extension Profile {
  init(_ account: Account) {
    self.init(
      user: account.id, handle: account.handle, displayName: account.displayName,
      updateTime: account.updateTime, version: account.version)
  }
}
