import VencejoCrypto
import VencejoSQLite

/// What waits to be posted. It is on disk with the change that it tells of: nothing that happened
/// is forgotten, whatever is killed when, and what was on its way then goes again.
extension WriteTransaction {
  /// Lets an event wait for a hook, in this transaction; one that is disabled gets none.
  public func enqueue(_ kind: HookKind, _ keys: KeysetWriter, for hook: Int64, eventTime: Int64)
    throws(StoreError)
  {
    let isActive = try first("SELECT state FROM hook WHERE hook_id = ?", hook) { $0.int(0) == 1 }
    guard isActive ?? false else { return }
    // Bounded by the limit itself.
    let waiting = try first("SELECT count(*) FROM hook_delivery WHERE hook_id = ?", hook) {
      $0.int(0)
    }
    guard (waiting ?? 0) < HookLimits.waiting else {
      return try disable(hook, "QUEUE_FULL: \(HookLimits.waiting) events waited")
    }
    try run(
      """
      INSERT INTO hook_delivery(hook_id, uuid, kind, keys, event_us) VALUES (?, ?, ?, ?, ?)
      """, hook, UUID.v7(milliseconds: now / 1000), kind.rawValue, keys.bytes, eventTime)
    try run("UPDATE hook SET next_us = ifnull(next_us, ?) WHERE hook_id = ?", now, hook)
    hasQueuedHooks = true
  }

  /// Notes how an attempt went, and when the next may be made.
  public func finish(_ delivery: HookDelivery, _ outcome: HookOutcome) throws(StoreError) {
    let hook = delivery.hook.key
    // Deleted or disabled meanwhile.
    guard
      try first("SELECT state FROM hook WHERE hook_id = ?", hook, read: { $0.int(0) == 1 }) ?? false
    else { return }
    switch outcome {
    case .done:
      try take(delivery)
      try run(
        "UPDATE hook SET fault = '', fail_us = NULL, success_us = ? WHERE hook_id = ?", now, hook)
    case .gone(let fault):
      try disable(hook, fault)
    case .refused(let fault) where delivery.attempts + 1 >= HookLimits.refusals:
      try take(delivery)
      try run("UPDATE hook SET fault = ? WHERE hook_id = ?", fault, hook)
    case .failed(let fault), .refused(let fault):
      try run(
        "UPDATE hook_delivery SET attempts = attempts + 1 WHERE delivery_id = ?", delivery.key)
      try run(
        """
        UPDATE hook SET fault = ?1, fail_us = ifnull(fail_us, ?2), next_us = ?3 WHERE hook_id = ?4
        """, fault, now, now + HookLimits.delay(afterFailures: delivery.attempts + 1), hook)
      let since = try first("SELECT fail_us FROM hook WHERE hook_id = ?", hook) { $0.int(0) }
      if now - (since ?? now) >= HookLimits.patience {
        try disable(hook, "FAILED_TOO_LONG: \(fault)")
      }
    }
  }

  private func take(_ delivery: HookDelivery) throws(StoreError) {
    try run("DELETE FROM hook_delivery WHERE delivery_id = ?", delivery.key)
    try run(
      """
      UPDATE hook SET next_us = CASE WHEN EXISTS
        (SELECT 1 FROM hook_delivery WHERE hook_id = ?2) THEN ?1 END
      WHERE hook_id = ?2
      """, now, delivery.hook.key)
  }

  private func disable(_ hook: Int64, _ fault: String) throws(StoreError) {
    try run("DELETE FROM hook_delivery WHERE hook_id = ?", hook)
    try run("UPDATE hook SET state = 2, fault = ?, next_us = NULL WHERE hook_id = ?", fault, hook)
  }
}

extension ReadTransaction {
  /// The first event of each hook whose time has come, `limit` at most; those of hooks in `busy`
  /// wait: the events of one hook go one after the other.
  public func dueDeliveries(limit: Int, busy: Set<Int64> = []) throws(StoreError)
    -> [HookDelivery]
  {
    var due: [Int64] = []
    try each(
      """
      SELECT h.hook_id FROM hook h JOIN user u USING (user_id)
      WHERE h.next_us <= ? AND h.state = 1 AND u.state = 1 ORDER BY h.next_us
      """, [now]
    ) { row in
      if !busy.contains(row.int(0)) { due.append(row.int(0)) }
      return due.count < limit
    }
    var result: [HookDelivery] = []
    for key in due {
      guard let hook = try hooks("WHERE h.hook_id = ?", [key]).first else { continue }
      let found = try first(
        """
        SELECT delivery_id, uuid, kind, keys, event_us, attempts FROM hook_delivery
        WHERE hook_id = ? ORDER BY delivery_id LIMIT 1
        """, key
      ) { row -> HookDelivery? in
        row.uuid(1).map {
          HookDelivery(
            key: row.int(0), id: $0, hook: hook, kind: HookKind(rawValue: row.int(2)),
            keys: row.blob(3), eventTime: row.int(4), attempts: row.int(5))
        }
      }
      if let found, let delivery = found { result.append(delivery) }
    }
    return result
  }

  /// When the next event may be sent; nil when none waits.
  public func nextDelivery() throws(StoreError) -> Int64? {
    try first("SELECT min(next_us) FROM hook WHERE next_us IS NOT NULL AND state = 1") {
      $0.optionalInt(0)
    } ?? nil
  }
}
