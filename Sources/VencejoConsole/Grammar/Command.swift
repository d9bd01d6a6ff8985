/// What a line asks for, before anybody does it.
enum Command: Sendable, Hashable {
  case signUp(handle: String, password: String?, displayName: String?, email: String?)
  case signIn(handle: String, password: String?)
  case signOut(everywhere: Bool)
  case whoAmI, server

  case chats, back, unread
  case newChat(handles: [String], title: String?)
  case open(chat: String)
  /// To the chat that is open.
  case send(String)
  case say(chat: String, text: String)
  case messages(chat: String?, count: Int?)
  case read(chat: String?)
  case findUsers(String)
  case outbox
  /// By the number in the list of `outbox`; nil is all that failed.
  case retry(Int?)
  case discard(Int)

  case use(Place)
  case zones
  case newZone(String)
  case deleteZone(String)
  case put(Put)
  case get(String)
  case delete(String)
  case query(RecordQuery)
  case explain(RecordQuery)
  case changes(all: Bool)

  case watch(WatchTarget, Limit)
  case unwatch
  case wait(Limit)

  case help(String?)
  case quit

  /// What `use` chooses.
  enum Place: Sendable, Hashable {
    case container(String)
    case database(Database)
    case zone(String)
  }

  enum Database: String, Sendable, Hashable, CaseIterable {
    case `private`
    case `public`
  }

  struct Put: Sendable, Hashable {
    enum Policy: Sendable, Hashable {
      /// Writes the fields given over whatever is there.
      case merge
      /// The record must not exist.
      case create
      /// The record becomes exactly this one.
      case replace
      /// The stored record must still have this change tag.
      case ifTag(String)
    }
    var type: String
    var name: String?
    var fields: [String: RecordValue]
    var policy: Policy
  }

  enum WatchTarget: Sendable, Hashable {
    /// The zone in use, or the one named.
    case zone(String?)
    case query(RecordQuery)
  }

  /// When to stop waiting.
  struct Limit: Sendable, Hashable {
    var count: Int?
    /// Seconds.
    var timeout: Double?
  }
}

/// A value of a record field as typed.
enum RecordValue: Sendable, Hashable {
  case string(String)
  case integer(Int64)
  case double(Double)
  /// The time when the command runs.
  case now
  /// Seconds since 1970 and nanoseconds.
  case timestamp(Int64, Int32)
  /// Degrees of latitude and longitude.
  case location(Double, Double)
  /// The name of a record in the same zone.
  case reference(String)
  case list([RecordValue])
}

/// `query Type where … order by … limit n`.
struct RecordQuery: Sendable, Hashable {
  struct Order: Sendable, Hashable {
    var field: String
    var descending: Bool
  }

  enum Comparison: String, Sendable, Hashable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
  }

  indirect enum Filter: Sendable, Hashable {
    case all([Filter])
    case any([Filter])
    case not(Filter)
    case compare(String, Comparison, RecordValue)
    case isIn(String, [RecordValue])
    case beginsWith(String, String)
    /// The list field holds all or any of the values.
    case contains(String, [RecordValue], all: Bool)
    case within(field: String, latitude: Double, longitude: Double, metres: Double)
    case exists(String)
  }

  var type: String
  var filter: Filter?
  var order: [Order] = []
  var limit: Int?
}

/// A line that is no command, and where it goes wrong.
struct GrammarError: Error, Sendable, Hashable {
  var message: String
  var hint: String?
  /// The offending place, in grapheme clusters of the line.
  var range: Range<Int>?
}
