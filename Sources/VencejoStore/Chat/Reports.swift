public import VencejoCrypto
import VencejoSQLite

/// What somebody told the administrators about a message.
public struct Report: Sendable, Hashable {
  public let key: Int64
  public let id: UUID
  /// `chats/{chat}/messages/{message}`.
  public let message: String
  public let reporter: UUID
  public let reason: String
  public let createTime: Int64
  public let resolveTime: Int64?
  public let resolution: String
}

public struct ReportPage: Sendable {
  public let reports: [Report]
  public let nextPageToken: String
}

extension ReadTransaction {
  fileprivate func reports(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError)
    -> [Report]
  {
    var result: [Report] = []
    try each(
      dynamic: """
        SELECT r.report_id, r.uuid, r.message_name, u.uuid, r.reason, r.create_us, r.resolve_us,
          r.resolution
        FROM report r JOIN user u ON u.user_id = r.reporter_id \(clause)
        """, values
    ) { row in
      if let id = row.uuid(1), let reporter = row.uuid(3) {
        result.append(
          Report(
            key: row.int(0), id: id, message: row.text(2), reporter: reporter,
            reason: row.text(4), createTime: row.int(5), resolveTime: row.optionalInt(6),
            resolution: row.text(7)))
      }
      return true
    }
    return result
  }

  /// Reports, oldest first; for administrators of the server.
  ///
  /// - Throws: `NOT_AN_ADMINISTRATOR`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listReports(
    includeResolved: Bool, pageSize: Int32 = 0, pageToken: String = "", by caller: Principal
  ) throws(StoreError) -> ReportPage {
    try requireAdministrator(caller)
    let size = try ChatLimits.page(pageSize)
    let (arguments, after) = try keyset(
      includeResolved ? "ListReports+" : "ListReports", nil, caller.user, pageToken)
    let found = try reports(
      "WHERE r.report_id > ? AND (? OR r.resolve_us IS NULL) ORDER BY r.report_id LIMIT ?",
      [after, includeResolved, size + 1])
    let page = Array(found.prefix(size))
    return ReportPage(
      reports: page, nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : "")
  }

  /// - Throws: `NOT_AN_ADMINISTRATOR`.
  func requireAdministrator(_ caller: Principal) throws(StoreError) {
    guard caller.role == .administrator else {
      throw StoreError(
        .permissionDenied, "NOT_AN_ADMINISTRATOR", "only administrators of the server may do this")
    }
  }
}

extension ReadTransaction {
  /// What a delivery of ``HookKind/report`` is about.
  public func report(of delivery: HookDelivery) throws(StoreError) -> Report? {
    var keys = KeysetReader(delivery.keys)
    guard let id = keys.raw() else { return nil }
    return try reports("WHERE r.uuid = ?", [id]).first
  }
}

extension WriteTransaction {
  /// Tells the administrators of the server about a message.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `BAD_REASON`, `REQUEST_ID_REUSED`.
  public func report(
    _ message: UUID, in chat: UUID, reason: String, requestID: String = "", by user: Int64
  ) throws(StoreError) {
    guard !AccountRules.isBlank(reason), reason.utf8.count <= 4096 else {
      throw .invalid("reason", "BAD_REASON", "say why, in at most 4096 bytes")
    }
    let found = try self.message(message, in: chat, for: user)
    var request = KeysetWriter()
    request.raw(message.bytes)
    request.text(reason)
    guard try isNew("ReportMessage", requestID, request, by: user) else { return }
    let id = UUID.v7(milliseconds: now / 1000)
    var keys = KeysetWriter()
    keys.raw(id.bytes)
    try enqueueServerEvent(.report, keys)
    try run(
      """
      INSERT INTO report(uuid, message_key, message_name, reporter_id, reason, create_us)
      VALUES (?, ?, ?, ?, ?, ?)
      """, id, found.key, "chats/\(chat)/messages/\(message)", user,
      reason, now)
  }

  /// Closes a report.
  ///
  /// - Throws: `NOT_AN_ADMINISTRATOR`, `REPORT_NOT_FOUND`, `BAD_REASON`.
  public func resolveReport(_ id: UUID, resolution: String, by caller: Principal)
    throws(StoreError) -> Report
  {
    try requireAdministrator(caller)
    guard resolution.utf8.count <= 4096 else {
      throw .invalid("resolution", "BAD_REASON", "a resolution has at most 4096 bytes")
    }
    try run(
      "UPDATE report SET resolve_us = ifnull(resolve_us, ?), resolution = ? WHERE uuid = ?", now,
      resolution, id)
    guard let report = try reports("WHERE r.uuid = ?", [id]).first else {
      throw .notFound("REPORT_NOT_FOUND", type: "vencejo.chat.v1.Report", name: "reports/\(id)")
    }
    return report
  }
}
