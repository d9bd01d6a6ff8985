import CSQLite
import Synchronization

/// FTS5's own `unicode61` tokenizer outside of any table: words are cut and folded in memory
/// exactly as they are in a full-text index (case and, by `remove_diacritics 2`, accents).
///
/// `@unchecked Sendable`: the tokenizer has a buffer of its own, and the mutex lets one thread at
/// it at a time; the pointers never change.
public final class WordTokenizer: @unchecked Sendable {
  /// Nil when SQLite was built without FTS5.
  public static let unicode61 = WordTokenizer()

  private let database: OpaquePointer
  private let methods: fts5_tokenizer
  private let tokenizer: OpaquePointer
  private let lock = Mutex(())

  private init?() {
    var handle: OpaquePointer?
    guard
      sqlite3_open_v2(
        ":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil)
        == SQLITE_OK, let handle
    else {
      sqlite3_close_v2(handle)
      return nil
    }
    guard let (methods, tokenizer) = Self.make(handle) else {
      sqlite3_close_v2(handle)
      return nil
    }
    database = handle
    self.methods = methods
    self.tokenizer = tokenizer
  }

  deinit {
    methods.xDelete?(tokenizer)
    sqlite3_close_v2(database)
  }

  private static func make(_ database: OpaquePointer) -> (fts5_tokenizer, OpaquePointer)? {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(database, "SELECT fts5(?1)", -1, &statement, nil) == SQLITE_OK else {
      return nil
    }
    var api: UnsafeMutablePointer<fts5_api>?
    withUnsafeMutablePointer(to: &api) { slot in
      _ = sqlite3_bind_pointer(statement, 1, slot, "fts5_api_ptr", nil)
      _ = sqlite3_step(statement)
    }
    sqlite3_finalize(statement)
    guard let api else { return nil }
    var context: UnsafeMutableRawPointer?
    var methods = fts5_tokenizer()
    guard api.pointee.xFindTokenizer?(api, "unicode61", &context, &methods) == SQLITE_OK else {
      return nil
    }
    var tokenizer: OpaquePointer?
    let code = "remove_diacritics".withCString { name in
      "2".withCString { value in
        var arguments: [UnsafePointer<CChar>?] = [name, value]
        return methods.xCreate?(context, &arguments, 2, &tokenizer) ?? SQLITE_ERROR
      }
    }
    guard code == SQLITE_OK, let tokenizer else { return nil }
    return (methods, tokenizer)
  }

  private final class Words {
    var list: [String] = []
    let limit: Int
    init(limit: Int) { self.limit = limit }
  }

  /// The words of a text in their folded form, in order, repeats included; at most `limit`.
  public func words(_ text: String, limit: Int) -> [String] {
    let words = Words(limit: limit)
    var text = text
    lock.withLock { _ in
      text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { bytes in
          _ = methods.xTokenize?(
            tokenizer, Unmanaged.passUnretained(words).toOpaque(), FTS5_TOKENIZE_DOCUMENT,
            bytes.baseAddress, Int32(clamping: bytes.count)
          ) { context, _, token, count, _, _ in
            guard let context, let token else { return SQLITE_OK }
            let words = Unmanaged<Words>.fromOpaque(context).takeUnretainedValue()
            guard words.list.count < words.limit else { return SQLITE_DONE }
            let bytes = UnsafeRawBufferPointer(start: token, count: Int(count))
            words.list.append(String(decoding: bytes, as: UTF8.self))
            return SQLITE_OK
          }
        }
      }
    }
    return words.list
  }
}
