import VencejoSQLite

extension StoreError {
  /// A database's failure in this room's words.
  init(_ error: SQLiteError) {
    switch error.kind {
    case .full:
      self.init(
        .resourceExhausted, "DISK_FULL", "the server's disk is full: nothing can be stored",
        details: [.retry(afterMilliseconds: 10_000)])
    case .interrupted:
      self.init(.unavailable, "READ_TOO_SLOW", "the read took too long and was cancelled")
    case .busy:
      self.init(.unavailable, "STORE_BUSY", "the data is locked by another program")
    case .cannotOpen, .readOnly:
      self.init(.unavailable, "STORAGE_UNREADABLE", error.message)
    case .notADatabase:
      self.init(.failedPrecondition, "NOT_A_DATABASE", error.message)
    case .newerSchema(let found, let supported):
      self.init(
        .failedPrecondition, "NEWER_SCHEMA", error.message,
        metadata: ["found": String(found), "supported": String(supported)])
    case .corrupt:
      self.init(.dataLoss, "STORAGE_DAMAGED", error.message)
    case .constraint, .other:
      self.init(.internalError, "STORAGE_FAILED", error.message)
    }
  }

  /// Any error in this room's words.
  init(wrapping error: any Error) {
    switch error {
    case let error as StoreError: self = error
    case let error as SQLiteError: self.init(error)
    default: self.init(.internalError, "STORE_FAILED", "\(error)")
    }
  }
}
