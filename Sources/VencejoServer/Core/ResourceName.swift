import VencejoCrypto
import VencejoStore

/// Resource names (AIP-122).
enum ResourceName {
  /// `users/{id}`; `users/me` is the caller.
  static func user(_ name: String, field: String, caller: Principal) throws(StoreError) -> UUID {
    guard let id = segment(name, "users") else { throw bad(field, "users/{user}") }
    if id == "me" { return caller.userID }
    guard let uuid = UUID(parsing: id) else { throw bad(field, "users/{user}") }
    return uuid
  }

  /// `users/{id}/profile`, or the user's own name.
  static func profile(_ name: String, field: String, caller: Principal) throws(StoreError)
    -> UUID
  {
    let suffix = "/profile"
    let user = name.hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : name
    return try self.user(user, field: field, caller: caller)
  }

  /// `chats/{id}`.
  static func chat(_ name: String, field: String) throws(StoreError) -> UUID {
    guard let uuid = segment(name, "chats").flatMap({ UUID(parsing: $0) }) else {
      throw bad(field, "chats/{chat}")
    }
    return uuid
  }

  /// `chats/{id}/messages/{id}`.
  static func message(_ name: String, field: String) throws(StoreError) -> (chat: UUID, id: UUID) {
    try part(name, of: "messages", field: field)
  }

  /// `chats/{id}/settings`.
  static func settings(_ name: String, field: String) throws(StoreError) -> UUID {
    let suffix = "/settings"
    guard name.hasSuffix(suffix) else { throw bad(field, "chats/{chat}/settings") }
    return try chat(String(name.dropLast(suffix.count)), field: field)
  }

  /// `chats/{id}/members/{id}`; the user may be `me`.
  static func member(_ name: String, field: String, caller: Principal) throws(StoreError) -> (
    chat: UUID, user: UUID
  ) {
    let suffix = "/members/me"
    if name.hasSuffix(suffix) {
      return (try chat(String(name.dropLast(suffix.count)), field: field), caller.userID)
    }
    let part = try part(name, of: "members", field: field)
    return (part.chat, part.id)
  }

  /// `chats/{id}/{collection}/{id}`.
  static func part(_ name: String, of collection: String, field: String) throws(StoreError) -> (
    chat: UUID, id: UUID
  ) {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0] == "chats", parts[2] == collection,
      let chat = UUID(parsing: parts[1]), let id = UUID(parsing: parts[3])
    else { throw bad(field, "chats/{chat}/\(collection)/{id}") }
    return (chat, id)
  }

  /// `users/{id}/{collection}/{id}`; the user may be `me`.
  static func userPart(
    _ name: String, of collection: String, field: String, caller: Principal
  ) throws(StoreError) -> (user: UUID, id: UUID) {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0] == "users", parts[2] == collection,
      let user = parts[1] == "me" ? caller.userID : UUID(parsing: parts[1]),
      let id = UUID(parsing: parts[3])
    else { throw bad(field, "users/{user}/\(collection)/{id}") }
    return (user, id)
  }

  /// `users/{id}/{collection}/{id}` of the caller's own.
  static func own(
    _ name: String, _ collection: String, field: String, caller: Principal
  ) throws(StoreError) -> UUID {
    let part = try userPart(name, of: collection, field: field, caller: caller)
    guard part.user == caller.userID else { throw bad(field, "users/me/\(collection)/{id}") }
    return part.id
  }

  /// `{collection}/{id}`.
  static func single(_ name: String, _ collection: String, field: String) throws(StoreError)
    -> UUID
  {
    guard let id = segment(name, collection).flatMap({ UUID(parsing: $0) }) else {
      throw bad(field, "\(collection)/{id}")
    }
    return id
  }

  private static func segment(_ name: String, _ collection: String) -> String? {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == collection, !parts[1].isEmpty else { return nil }
    return String(parts[1])
  }

  private static func bad(_ field: String, _ format: String) -> StoreError {
    .invalid(field, "BAD_NAME", "\(field) must have the form \(format)")
  }
}
