import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// RecordService over the store.
struct RecordServer: Record.RecordService {
  let store: Store
  let authenticator: Authenticator
  let hub: RecordHub
  let streams: StreamRegistry
  let configuration: Backend.Configuration

  /// Handlers only await the store's own threads.
  var execution: HandlerExecution { .loop }

  func caller(_ context: ServerContext) async throws -> RecordCaller {
    RecordCaller(try await authenticator.principal(context))
  }

  func database(
    _ name: String, _ caller: RecordCaller
  ) throws(StoreError) -> DatabaseID {
    try checking("parent") { () throws(RecordViolation) in
      try DatabaseID(parsing: name, caller: caller.user)
    }
  }

  func zone(
    _ name: String, _ field: String, _ caller: RecordCaller
  ) throws(StoreError) -> ZoneID {
    try checking(field) { () throws(RecordViolation) in
      try ZoneID(parsing: name, caller: caller.user)
    }
  }

  /// A database, or one zone of it.
  func place(
    _ parent: String, _ caller: RecordCaller
  ) throws(StoreError) -> (DatabaseID, ZoneID?) {
    // A zone's name has two segments more than a database's.
    guard parent.utf8.count(where: { $0 == UInt8(ascii: "/") }) > 3 else {
      return (try database(parent, caller), nil)
    }
    let zone = try zone(parent, "parent", caller)
    return (zone.database, zone)
  }

  /// AIP-158: 0 is the default, more than the most is the most, less than 0 is an error.
  func pageSize(_ asked: Int32) throws(StoreError) -> Int {
    guard asked >= 0 else {
      throw StoreError(RecordViolation("page_size", "page_size must not be negative"))
    }
    return asked == 0
      ? RecordRules.defaultPageSize : min(Int(asked), RecordRules.maxPageSize)
  }

  // MARK: Zones

  func createZone(_ request: Record.CreateZoneRequest, _ context: ServerContext) async throws
    -> Record.CreateZoneResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let database = try database(request.parent, caller)
      let id = try checking("zone_id") { () throws(RecordViolation) in
        try ZoneID(database: database, zone: request.zoneId)
      }
      return try await store.writeRecords(database, caller: caller) { transaction, database in
        let zone = try transaction.createZone(id, in: database, caller: caller)
        return Record.CreateZoneResponse(
          zone: Record.Zone(zone, transaction.tokens, now: transaction.now))
      }
    }
  }

  func getZone(_ request: Record.GetZoneRequest, _ context: ServerContext) async throws
    -> Record.GetZoneResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try zone(request.name, "name", caller)
      return try await store.readRecords(id.database, caller: caller) { transaction, database in
        let zone = try transaction.recordZone(id, in: database)
        return Record.GetZoneResponse(
          zone: Record.Zone(zone, transaction.tokens, now: transaction.now))
      }
    }
  }

  func listZones(_ request: Record.ListZonesRequest, _ context: ServerContext) async throws
    -> Record.ListZonesResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let size = try pageSize(request.pageSize)
      if let container = try sharedContainer(request.parent) {
        return try await sharedZones(container, request, size, caller)
      }
      let id = try database(request.parent, caller)
      return try await store.readRecords(id, caller: caller) { transaction, database in
        let page = try transaction.zonePage(
          in: database, pageSize: size, pageToken: request.pageToken)
        return Record.ListZonesResponse(
          zones: page.zones.map {
            Record.Zone($0, transaction.tokens, now: transaction.now)
          }, nextPageToken: page.nextPageToken ?? "")
      }
    }
  }

  func deleteZone(_ request: Record.DeleteZoneRequest, _ context: ServerContext) async throws
    -> Record.DeleteZoneResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try zone(request.name, "name", caller)
      try await store.writeRecords(id.database, caller: caller) {
        try $0.deleteZone(id, etag: request.etag, in: $1, caller: caller)
      }
      return Record.DeleteZoneResponse()
    }
  }

  // MARK: Records

  func modifyRecords(_ request: Record.ModifyRecordsRequest, _ context: ServerContext)
    async throws -> Record.ModifyRecordsResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try database(request.parent, caller)
      let batch = try request.batch(in: id, caller: caller)
      let keys = request.desiredKeys?.keys
      let outcome = try await store.writeRecords(id, caller: caller) {
        try $0.modifyRecords(batch, in: $1, caller: caller)
      }
      let tokens = store.tokens
      let now = store.now
      return Record.ModifyRecordsResponse(
        results: outcome.results.map { Record.OperationResult($0, keeping: keys) },
        zoneTokens: outcome.zones.map {
          Record.ZoneToken(
            zone: $0.id.name,
            changeToken: tokens.changeToken($0.id, position: $0.change, now: now))
        }, complete: outcome.isComplete)
    }
  }

  func getRecord(_ request: Record.GetRecordRequest, _ context: ServerContext) async throws
    -> Record.GetRecordResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try checking("name") { () throws(RecordViolation) in
        try RecordID(parsing: request.name, caller: caller.user)
      }
      let record = try await store.readRecords(id.zone.database, caller: caller) {
        try $0.record(id, in: $1)
      }
      return Record.GetRecordResponse(
        record: Record.Record(record, keeping: request.desiredKeys?.keys))
    }
  }

  func lookupRecords(_ request: Record.LookupRecordsRequest, _ context: ServerContext)
    async throws -> Record.LookupRecordsResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let database = try database(request.parent, caller)
      let ids = try request.names.prefix(RecordRules.maxOperations + 1).map { name in
        try checking("names") { () throws(RecordViolation) in
          let id = try RecordID(parsing: name, caller: caller.user)
          guard id.zone.database == database else {
            throw RecordViolation("", "\(id) is not in \(database)")
          }
          return id
        }
      }
      let results = try await store.readRecords(database, caller: caller) {
        try $0.lookUpRecords(ids, in: $1)
      }
      let keys = request.desiredKeys?.keys
      return Record.LookupRecordsResponse(
        results: results.map { result in
          switch result {
          case .success(let record): .init(result: .record(.init(record, keeping: keys)))
          case .failure(let error): .init(result: .error(.init(RPCError(error, .record))))
          }
        })
    }
  }

  func queryRecords(_ request: Record.QueryRecordsRequest, _ context: ServerContext)
    async throws -> Record.QueryRecordsResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let (database, zone) = try place(request.parent, caller)
      let query = try (request.query ?? .init()).checked(in: database, zone: zone, caller: caller)
      let size = try pageSize(request.pageSize)
      let page = try await store.readRecords(database, caller: caller) {
        try $0.queryRecords(
          query, zone: zone, in: $1, pageSize: size, pageToken: request.pageToken,
          explain: request.explain)
      }
      let keys = request.desiredKeys?.keys
      return Record.QueryRecordsResponse(
        records: page.records.map { Record.Record($0, keeping: keys) },
        nextPageToken: page.nextPageToken ?? "",
        resumeToken: request.pageToken.isEmpty
          ? store.tokens.databaseToken(database, position: page.position, now: store.now) : "",
        explanation: page.explanation.map { explanation in
          .init(
            rowsRead: explanation.rows, cutShort: explanation.isCutShort,
            steps: explanation.steps.map { .init(statement: $0.statement, plan: $0.plan) })
        })
    }
  }

  func countRecords(_ request: Record.CountRecordsRequest, _ context: ServerContext)
    async throws -> Record.CountRecordsResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let (database, zone) = try place(request.parent, caller)
      let query = try (request.query ?? .init()).checked(in: database, zone: zone, caller: caller)
      guard request.limit >= 0 else {
        throw StoreError(RecordViolation("limit", "limit must not be negative"))
      }
      let result = try await store.readRecords(database, caller: caller) {
        try $0.countRecords(query, zone: zone, in: $1, limit: request.limit)
      }
      return Record.CountRecordsResponse(count: result.count, limitReached: !result.isExact)
    }
  }

  func fetchDatabaseChanges(
    _ request: Record.FetchDatabaseChangesRequest, _ context: ServerContext
  ) async throws -> Record.FetchDatabaseChangesResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let size = try pageSize(request.pageSize)
      if let container = try sharedContainer(request.parent) {
        return try await sharedChanges(container, request, size, caller)
      }
      let id = try database(request.parent, caller)
      return try await store.readRecords(id, caller: caller) { transaction, database in
        let (tokens, now) = (transaction.tokens, transaction.now)
        let position = try tokens.position(
          ofDatabaseChangeToken: request.changeToken, id, now: now)
        let changes = try transaction.databaseChanges(
          in: database, after: position, pageSize: size)
        return Record.FetchDatabaseChangesResponse(
          changedZones: changes.changed.map { Record.Zone($0, tokens, now: now) },
          deletedZones: changes.deleted.map { .init(name: $0.name, reason: .deleted) },
          changeToken: tokens.databaseChangeToken(id, position: changes.position, now: now),
          moreComing: changes.moreComing)
      }
    }
  }

  func fetchZoneChanges(_ request: Record.FetchZoneChangesRequest, _ context: ServerContext)
    async throws -> Record.FetchZoneChangesResponse
  {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try zone(request.parent, "parent", caller)
      let size = try pageSize(request.pageSize)
      return try await store.readRecords(id.database, caller: caller) { transaction, database in
        let place = try transaction.tokens.place(
          ofChangeToken: request.changeToken, id, now: transaction.now)
        let changes = try transaction.zoneChanges(
          transaction.recordZone(id, in: database), in: database, after: place.position,
          since: place.since, types: request.recordTypes, pageSize: size, caller: caller)
        var response = Record.FetchZoneChangesResponse()
        let keys = request.desiredKeys?.keys
        response.changes = changes.changes.map { change in
          switch change {
          case .changed(let record): .init(change: .changed(.init(record, keeping: keys)))
          case .deleted(let record): .init(change: .deleted(.init(record)))
          }
        }
        response.changeToken = transaction.tokens.changeToken(
          id, position: changes.position, since: changes.since, now: transaction.now)
        response.moreComing = changes.moreComing
        response.lastRequestId = changes.lastRequestID
        return response
      }
    }
  }

  // MARK: Live

  func subscribe(
    _ request: Record.SubscribeRequest, _ out: ResponseWriter<Record.SubscribeResponse>,
    _ context: ServerContext
  ) async throws {
    try await answering(.record) {
      let principal = try await authenticator.principal(context)
      let caller = RecordCaller(principal)
      let database = try databaseOrShared(request.parent, caller)
      var subscription = RecordSubscription(
        store: store, hub: hub, streams: streams, configuration: configuration,
        principal: principal, caller: caller,
        feed: try request.feed(in: database, caller: caller),
        keys: request.desiredKeys?.keys, out: out)
      try await subscription.run(request)
    }
  }
}
