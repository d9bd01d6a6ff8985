public import VencejoCrypto
import VencejoSQLite

/// A file that was uploaded.
public struct Attachment: Sendable, Hashable {
  public let key: Int64
  public let id: UUID
  public let sha256: [UInt8]
  public let size: Int64
  public let fileName: String
  public let contentType: String
  public let uploader: UUID
  public let createTime: Int64
  /// When it is collected; nil while a message holds it.
  public let expireTime: Int64?
}

/// What an upload begins with.
public struct NewUpload: Sendable {
  public var id: UUID
  public var sha256: [UInt8]
  public var size: Int64
  public var fileName: String
  public var contentType: String

  public init(id: UUID, sha256: [UInt8], size: Int64, fileName: String, contentType: String) {
    self.id = id
    self.sha256 = sha256
    self.size = size
    self.fileName = fileName
    self.contentType = contentType
  }
}

/// An upload on its way.
public struct Upload: Sendable, Hashable {
  /// Internal key.
  public let key: Int64
  public let size: Int64
  public let sha256: [UInt8]
  public let expireTime: Int64
  /// Once it is complete.
  public let attachment: Attachment?
}

/// Bounds of what people upload.
public enum AttachmentLimits {
  /// Bytes of one file.
  public static let bytes: Int64 = 2 << 30
  /// Bytes of one chunk.
  public static let chunkBytes = 1 << 20
  /// Bytes a chunk should have.
  public static let recommendedChunkBytes = 64 << 10
  /// Bytes of all files of one user together.
  public static let quota: Int64 = 20 << 30
  /// Attachments of one message.
  public static let perMessage = 10
  /// Microseconds an upload may rest, and an attachment may wait for its message.
  static let patience: Int64 = 86_400_000_000
  /// Uploads of one user that are not complete.
  static let openUploads: Int64 = 64
}

extension ReadTransaction {
  private func attachments(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError)
    -> [Attachment]
  {
    var result: [Attachment] = []
    try each(
      dynamic: """
        SELECT a.attachment_id, a.uuid, a.sha256, a.size, a.file_name, a.content_type, u.uuid,
          a.create_us, a.expire_us
        FROM attachment a JOIN user u ON u.user_id = a.uploader_id \(clause)
        """, values
    ) { row in
      if let id = row.uuid(1), let uploader = row.uuid(6) {
        result.append(
          Attachment(
            key: row.int(0), id: id, sha256: row.blob(2), size: row.int(3),
            fileName: row.text(4), contentType: row.text(5), uploader: uploader,
            createTime: row.int(7), expireTime: row.optionalInt(8)))
      }
      return true
    }
    return result
  }

  /// An attachment the user uploaded, or sees in a message.
  ///
  /// - Throws: `ATTACHMENT_NOT_FOUND`.
  public func attachment(_ id: UUID, for user: Int64) throws(StoreError) -> Attachment {
    guard let found = try attachments("WHERE a.uuid = ?", [id]).first,
      try isReadable(found, by: user)
    else {
      throw .notFound(
        "ATTACHMENT_NOT_FOUND", type: "vencejo.chat.v1.Attachment", name: "attachments/\(id)")
    }
    return found
  }

  private func isReadable(_ attachment: Attachment, by user: Int64) throws(StoreError) -> Bool {
    if try userID(user) == attachment.uploader { return true }
    let places = try all(
      """
      SELECT m.chat_id, m.message_key, c.uuid FROM attachment_ref r JOIN message m USING (message_key)
        JOIN chat c ON c.chat_id = m.chat_id AND c.delete_us IS NULL
        JOIN member me ON me.chat_id = m.chat_id AND me.user_id = ?
      WHERE r.attachment_id = ? AND m.delete_us IS NULL
      """, user, attachment.key
    ) { (chat: $0.int(0), message: $0.int(1), id: $0.uuid(2)) }
    for place in places {
      guard let id = place.id else { continue }
      let seen = try messages(
        place.chat, id, reader: user, "AND m.message_key = ?4", [place.message])
      if !seen.isEmpty { return true }
    }
    return false
  }

  /// How far an upload of the user's got.
  ///
  /// - Throws: `UPLOAD_NOT_FOUND`.
  public func upload(_ id: UUID, by user: Int64) throws(StoreError) -> Upload {
    guard let upload = try uploads("u.user_id = ? AND u.uuid = ?", [user, id]) else {
      throw .notFound("UPLOAD_NOT_FOUND", type: "vencejo.chat.v1.Upload", name: "uploads/\(id)")
    }
    return upload
  }

  fileprivate func uploads(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError)
    -> Upload?
  {
    var found: (key: Int64, size: Int64, sha: [UInt8], expiry: Int64, attachment: Int64?)?
    try each(
      dynamic: """
        SELECT u.upload_id, u.size, u.sha256, u.expire_us, u.attachment_id FROM upload u
        WHERE \(clause)
        """, values
    ) {
      found = ($0.int(0), $0.int(1), $0.blob(2), $0.int(3), $0.optionalInt(4))
      return false
    }
    guard let found, found.expiry > now || found.attachment != nil else { return nil }
    var attachment: Attachment?
    if let key = found.attachment {
      attachment = try attachments("WHERE a.attachment_id = ?", [key]).first
    }
    return Upload(
      key: found.key, size: found.size, sha256: found.sha, expireTime: found.expiry,
      attachment: attachment)
  }

  /// Whether any attachment still needs a file.
  func isNeeded(content sha256: [UInt8]) throws(StoreError) -> Bool {
    try first("SELECT 1 FROM attachment WHERE sha256 = ?", sha256) { _ in true } ?? false
  }
}

extension WriteTransaction {
  /// Begins an upload, or finds the one that was begun; complete at once where the user has
  /// uploaded the same bytes before.
  ///
  /// - Throws: `BAD_UPLOAD`, `LIMIT_EXCEEDED`, `QUOTA_EXCEEDED`, `TOO_MANY_UPLOADS`,
  ///   `UPLOAD_ID_REUSED`.
  public func beginUpload(_ new: NewUpload, by user: Int64) throws(StoreError) -> Upload {
    guard new.sha256.count == SHA256.size, new.size > 0, new.fileName.utf8.count <= 1024,
      AccountRules.isOneLine(new.fileName), new.contentType.utf8.count <= 256,
      AccountRules.isOneLine(new.contentType)
    else {
      throw .invalid(
        "header", "BAD_UPLOAD",
        "a file has a size, a SHA-256 of 32 bytes, a name of at most 1024 bytes and a type of at most 256"
      )
    }
    guard new.size <= AttachmentLimits.bytes else {
      throw StoreError(
        .invalidArgument, "LIMIT_EXCEEDED", "a file has at most \(AttachmentLimits.bytes) bytes",
        metadata: ["limit_bytes": String(AttachmentLimits.bytes)],
        details: [.quota(subject: "header.size_bytes", description: "too large")])
    }
    if let known = try uploads("u.user_id = ? AND u.uuid = ?", [user, new.id]) {
      guard known.sha256 == new.sha256, known.size == new.size else {
        throw .invalid(
          "header.upload_id", "UPLOAD_ID_REUSED", "this upload_id was used for another file")
      }
      return known
    }
    try run("DELETE FROM upload WHERE user_id = ? AND uuid = ?", user, new.id)
    try refuseTooMuch(new, user)
    try run(
      """
      INSERT INTO upload(user_id, uuid, sha256, size, file_name, content_type, expire_us)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """, user, new.id, new.sha256, new.size, new.fileName, new.contentType,
      now + AttachmentLimits.patience)
    let key = lastInsertRowID
    // Only what is the user's own: whether others have a file is nobody's business.
    let own = try first(
      "SELECT 1 FROM attachment WHERE sha256 = ? AND size = ? AND uploader_id = ?", new.sha256,
      new.size, user
    ) { _ in true }
    if own == true { return try completeUpload(key) }
    return try upload(new.id, by: user)
  }

  private func refuseTooMuch(_ new: NewUpload, _ user: Int64) throws(StoreError) {
    let used = try first(
      "SELECT ifnull(sum(size), 0) FROM attachment WHERE uploader_id = ?", user
    ) { $0.int(0) }
    let open = try first(
      """
      SELECT count(*), ifnull(sum(size), 0) FROM upload
      WHERE user_id = ? AND attachment_id IS NULL AND expire_us > ?
      """, user, now
    ) { (count: $0.int(0), size: $0.int(1)) }
    guard (open?.count ?? 0) < AttachmentLimits.openUploads else {
      throw StoreError(
        .resourceExhausted, "TOO_MANY_UPLOADS", "finish some of your uploads first",
        metadata: ["limit": String(AttachmentLimits.openUploads)])
    }
    guard (used ?? 0) + (open?.size ?? 0) + new.size <= AttachmentLimits.quota else {
      throw StoreError(
        .resourceExhausted, "QUOTA_EXCEEDED",
        "all files of a user have at most \(AttachmentLimits.quota) bytes",
        metadata: ["limit_bytes": String(AttachmentLimits.quota)],
        details: [.quota(subject: "users/me", description: "too many bytes")])
    }
  }

  /// Makes an attachment of an upload whose bytes are in their place.
  public func completeUpload(_ key: Int64) throws(StoreError) -> Upload {
    let known = try uploads("u.upload_id = ?", [key])
    if let known, known.attachment != nil { return known }
    try run(
      """
      INSERT INTO attachment(uuid, sha256, size, file_name, content_type, uploader_id, create_us,
        expire_us)
      SELECT ?, sha256, size, file_name, content_type, user_id, ?, ? FROM upload
      WHERE upload_id = ?
      """, UUID.v7(milliseconds: now / 1000), now, now + AttachmentLimits.patience, key)
    try run(
      "UPDATE upload SET attachment_id = ?, expire_us = ? WHERE upload_id = ?", lastInsertRowID,
      now + AttachmentLimits.patience, key)
    guard let upload = try uploads("u.upload_id = ?", [key]), upload.attachment != nil else {
      throw StoreError(.failedPrecondition, "UPLOAD_EXPIRED", "the upload rested too long")
    }
    return upload
  }

  /// Ties what a message shows to it.
  ///
  /// - Throws: `ATTACHMENT_NOT_FOUND`.
  func hold(_ attachments: [UUID], message: Int64, by user: Int64) throws(StoreError) {
    for id in attachments {
      let attachment = try attachment(id, for: user)
      try run(
        "INSERT OR IGNORE INTO attachment_ref(attachment_id, message_key) VALUES (?, ?)",
        attachment.key, message)
      try run(
        "UPDATE attachment SET expire_us = NULL WHERE attachment_id = ?", attachment.key)
    }
  }

  /// Forgets attachments and uploads past their time; answers whose bytes may go, and whether
  /// there may be more.
  public func collectAttachments() throws(StoreError) -> (
    files: [[UInt8]], uploads: [Int64], more: Bool
  ) {
    let attachments = try all(
      "SELECT attachment_id, sha256 FROM attachment WHERE expire_us <= ? LIMIT 100", now
    ) { (key: $0.int(0), sha: $0.blob(1)) }
    var files: [[UInt8]] = []
    for attachment in attachments {
      try run("DELETE FROM attachment WHERE attachment_id = ?", attachment.key)
      if try !isNeeded(content: attachment.sha) { files.append(attachment.sha) }
    }
    let uploads = try all("SELECT upload_id FROM upload WHERE expire_us <= ? LIMIT 100", now) {
      $0.int(0)
    }
    for upload in uploads { try run("DELETE FROM upload WHERE upload_id = ?", upload) }
    return (files, uploads, attachments.count == 100 || uploads.count == 100)
  }
}

extension WriteTransaction {
  /// Lets go of what a message showed; what nothing shows any more is collected a day later.
  func letGo(ofMessage key: Int64) throws(StoreError) {
    let held = try all("SELECT attachment_id FROM attachment_ref WHERE message_key = ?", key) {
      $0.int(0)
    }
    guard !held.isEmpty else { return }
    try run("DELETE FROM attachment_ref WHERE message_key = ?", key)
    for attachment in held {
      try run(
        """
        UPDATE attachment SET expire_us = ? WHERE attachment_id = ?
          AND NOT EXISTS (SELECT 1 FROM attachment_ref WHERE attachment_id = ?)
          AND NOT EXISTS (SELECT 1 FROM record_asset WHERE attachment_id = ?)
        """, now + AttachmentLimits.patience, attachment, attachment, attachment)
    }
  }
}

extension Store {
  /// Makes an attachment of an upload whose bytes are all there.
  ///
  /// - Throws: `DIGEST_MISMATCH`, `UPLOAD_EXPIRED`, `STORAGE_FAILED`, `DISK_FULL`.
  public func finish(_ upload: Upload) async throws(StoreError) -> Attachment {
    try await files.check(upload: upload.key, sha256: upload.sha256)
    let done = try await write { [files] transaction in
      try files.place(upload: upload.key, sha256: upload.sha256)
      return try transaction.completeUpload(upload.key)
    }
    guard let attachment = done.attachment else {
      throw StoreError(.failedPrecondition, "UPLOAD_EXPIRED", "the upload rested too long")
    }
    return attachment
  }

  /// Forgets attachments nothing shows and uploads that rested, rows first and files after them.
  public func collectAttachments() async throws(StoreError) {
    while true {
      let gone = try await write { try $0.collectAttachments() }
      for sha256 in gone.files {
        // Somebody may have uploaded the same bytes meanwhile.
        try await write { [files] transaction in
          if try !transaction.isNeeded(content: sha256) { files.unlinkAsset(sha256) }
        }
      }
      if !gone.uploads.isEmpty { try await files.remove(uploads: gone.uploads) }
      guard gone.more else { return }
    }
  }
}
