import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Saved subscriptions and their firings.
extension RecordServer {
  func createSubscription(
    _ request: Record.CreateSubscriptionRequest, _ context: ServerContext
  ) async throws -> Record.CreateSubscriptionResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let database = try databaseOrShared(request.parent, caller)
      let id = try checking("subscription_id") { () throws(RecordViolation) in
        try SubscriptionID(database: database, subscription: request.subscriptionId)
      }
      let new = try (request.subscription ?? .init()).stored(id, caller: caller)
      var secret = ""
      if !new.info.hookURI.isEmpty {
        _ = try HookRules.check(new.info.hookURI, configuration.hookPolicy)
        secret =
          request.signingSecret.isEmpty ? HookSignature.newSecret() : request.signingSecret
      }
      let key = secret.isEmpty ? [] : try HookSignature.key(secret)
      let (saved, isNew) = try await store.writeRecords(database, caller: caller) {
        let known = try? $0.subscription(id, in: $1, caller: caller)
        return (
          try $0.createSubscription(new, hookSecret: key, in: $1, caller: caller), known == nil
        )
      }
      return .init(
        subscription: try Record.Subscription(saved), signingSecret: isNew ? secret : "")
    }
  }

  func getSubscription(
    _ request: Record.GetSubscriptionRequest, _ context: ServerContext
  ) async throws -> Record.GetSubscriptionResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try subscription(request.name, caller)
      return try await store.readRecords(id.database, caller: caller) {
        .init(
          subscription: try Record.Subscription($0.subscription(id, in: $1, caller: caller)))
      }
    }
  }

  func listSubscriptions(
    _ request: Record.ListSubscriptionsRequest, _ context: ServerContext
  ) async throws -> Record.ListSubscriptionsResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let database = try databaseOrShared(request.parent, caller)
      return try await store.readRecords(database, caller: caller) {
        .init(
          subscriptions: try $0.subscriptions(in: $1, caller: caller).map {
            try Record.Subscription($0)
          })
      }
    }
  }

  func deleteSubscription(
    _ request: Record.DeleteSubscriptionRequest, _ context: ServerContext
  ) async throws -> Record.DeleteSubscriptionResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try subscription(request.name, caller)
      try await store.writeRecords(id.database, caller: caller) {
        try $0.deleteSubscription(
          id, allowMissing: request.allowMissing, in: $1, caller: caller)
      }
      return .init()
    }
  }

  func listFirings(
    _ request: Record.ListFiringsRequest, _ context: ServerContext
  ) async throws -> Record.ListFiringsResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let (database, id) = try subscriptions(request.parent, caller)
      let size = try pageSize(request.pageSize)
      return try await store.readRecords(database, caller: caller) { transaction, open in
        let (tokens, now) = (transaction.tokens, transaction.now)
        let position = try tokens.position(
          ofDatabaseToken: request.changeToken, database, now: now)
        let page = try transaction.firings(
          of: id, in: open, caller: caller, after: position, pageSize: size)
        return .init(
          firings: page.firings.map { Record.Firing($0) },
          changeToken: tokens.databaseToken(database, position: page.position, now: now),
          moreComing: page.moreComing, badge: Int32(clamping: page.badge))
      }
    }
  }

  func acknowledgeFirings(
    _ request: Record.AcknowledgeFiringsRequest, _ context: ServerContext
  ) async throws -> Record.AcknowledgeFiringsResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let (database, id) = try subscriptions(request.parent, caller)
      guard request.names.isEmpty != request.changeToken.isEmpty else {
        throw StoreError(RecordViolation("names", "name firings, or give a change_token"))
      }
      guard request.names.count <= RecordRules.maxPageSize else {
        throw StoreError.tooManyFirings
      }
      let badge = try await store.writeRecords(database, caller: caller) { transaction, open in
        guard request.names.isEmpty else {
          let ids = request.names.map { String($0.split(separator: "/").last ?? "") }
          return try transaction.acknowledgeFirings(ids, in: open, caller: caller)
        }
        let position = try transaction.tokens.position(
          ofDatabaseToken: request.changeToken, database, now: transaction.now)
        return try transaction.acknowledgeFirings(
          of: id, upTo: position, in: open, caller: caller)
      }
      return .init(badge: Int32(clamping: badge))
    }
  }

  /// A database, or `shared`, which holds subscriptions too.
  func databaseOrShared(
    _ name: String, _ caller: RecordCaller
  ) throws(StoreError) -> DatabaseID {
    try checking("parent") { () throws(RecordViolation) in
      try DatabaseID(parsingOrShared: name, caller: caller.user)
    }
  }

  private func subscription(
    _ name: String, _ caller: RecordCaller
  ) throws(StoreError) -> SubscriptionID {
    try checking("name") { () throws(RecordViolation) in
      try SubscriptionID(parsing: name, caller: caller.user)
    }
  }

  /// One subscription, or all of a database's: `…/subscriptions/-`.
  private func subscriptions(
    _ parent: String, _ caller: RecordCaller
  ) throws(StoreError) -> (DatabaseID, SubscriptionID?) {
    let all = "/subscriptions/-"
    if parent.hasSuffix(all) {
      return (try databaseOrShared(String(parent.dropLast(all.count)), caller), nil)
    }
    let id = try checking("parent") { () throws(RecordViolation) in
      try SubscriptionID(parsing: parent, caller: caller.user)
    }
    return (id.database, id)
  }
}

extension Record.Subscription {
  /// In the store's words.
  func stored(_ id: SubscriptionID, caller: RecordCaller) throws(StoreError) -> SavedSubscription {
    try checking("subscription") { () throws(RecordViolation) in
      func zone(_ name: String) throws(RecordViolation) -> String {
        let zone = try ZoneID(parsing: name, caller: caller.user)
        guard zone.database == id.database else {
          throw RecordViolation("zone", "\(zone) is not in \(id.database)")
        }
        return zone.zone
      }
      var canonical = self
      let stored: SavedSubscription.Kind
      switch kind {
      case .query(var query)?:
        let place = query.zone.isEmpty ? nil : try zone(query.zone)
        let here: ZoneID? =
          if let place { try ZoneID(database: id.database, zone: place) } else { nil }
        let asked = try (query.query ?? .init()).stored(
          in: id.database, zone: here, caller: caller)
        var reasons: Set<SavedSubscription.Reason> = []
        for reason in query.firesOn {
          guard let known = SavedSubscription.Reason(rawValue: Int64(reason.rawValue)) else {
            throw RecordViolation("query.fires_on", "not a known reason")
          }
          reasons.insert(known)
        }
        if let place { query.zone = "\(id.database.name)/zones/\(place)" }
        canonical.kind = .query(query)
        stored = .query(asked, firesOn: reasons, once: query.firesOnce, zone: place)
      case .zone(var target)?:
        let place = try zone(target.zone)
        target.zone = "\(id.database.name)/zones/\(place)"
        canonical.kind = .zone(target)
        stored = .zone(place, type: target.recordType.isEmpty ? nil : target.recordType)
      case .database(let target)?:
        stored = .database(type: target.recordType.isEmpty ? nil : target.recordType)
      case nil: throw RecordViolation("kind", "neither a query, a zone nor a database")
      }
      let info = notificationInfo ?? .init()
      canonical.name = id.name
      canonical.createTime = nil
      return SavedSubscription(
        id: id, kind: stored,
        info: NotificationInfo(
          title: info.title, body: info.body, desiredKeys: info.desiredKeys,
          incrementsBadge: info.incrementsBadge, collapseField: info.collapseField,
          hookURI: info.httpHookUri),
        message: canonical.serializedBytes())
    }
  }

  init(_ saved: SavedSubscription) throws {
    try self.init(serializedBytes: saved.message)
    createTime = Google.Timestamp(microseconds: saved.createTime)
  }
}

/// What is posted of a saved subscription: the firing, as ListFirings has it.
struct FiringRenderer: HookRenderer {
  let store: Store

  func payload(of delivery: HookDelivery) async throws -> HookPayload? {
    let firing = try await store.read { try $0.firing(of: delivery) }
    return try firing.map { try HookPayload(Record.Firing($0), delivery.hook.format) }
  }
}

extension Record.Firing {
  init(_ firing: Firing) {
    self.init()
    name = "\(firing.subscription.name)/firings/\(firing.id)"
    subscription = firing.subscription.name
    reason =
      switch firing.reason {
      case .creation: .creation
      case .update: .update
      case .deletion: .deletion
      }
    record = firing.record?.name ?? ""
    zone = firing.zone.name
    recordType = firing.type
    fields = firing.fields.mapValues { Record.Value($0, in: firing.zone.database) }
    title = firing.title
    body = firing.body
    badge = Int32(clamping: firing.badge)
    fireTime = Google.Timestamp(microseconds: firing.fireTime)
    actor = "users/\(firing.actor)"
  }
}
