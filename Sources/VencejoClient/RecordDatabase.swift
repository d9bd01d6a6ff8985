public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// One database of one container, with the calls an application makes of it.
public struct RecordDatabase: Sendable {
  let client: VencejoClient
  /// Format: `containers/{container}/databases/{database}`; `private` and `public` are databases
  /// of every caller.
  public let name: String

  /// The zone that exists without being made.
  public static let defaultZone = "_defaultZone"

  private var records: Record.RecordClient { Record.RecordClient(client.channel) }

  /// Format: `…/zones/{zone}`.
  public func zoneName(_ zone: String) -> String { "\(name)/zones/\(zone)" }

  /// Format: `…/zones/{zone}/records/{record}`.
  public func recordName(_ record: String, in zone: String) -> String {
    "\(zoneName(zone))/records/\(record)"
  }

  // MARK: Zones

  public func zones() async throws(RPCError) -> [Record.Zone] {
    var zones: [Record.Zone] = []
    var token = ""
    repeat {
      let page = token
      let response = try await client.authorized { (options) async throws(RPCError) in
        try await self.records.listZones(.init(parent: self.name, pageToken: page), options)
      }
      zones += response.zones
      token = response.nextPageToken
    } while !token.isEmpty
    return zones
  }

  @discardableResult
  public func createZone(_ zone: String) async throws(RPCError) -> Record.Zone {
    try await client.authorized { (options) async throws(RPCError) in
      try await self.records.createZone(
        .init(parent: self.name, zoneId: zone), options
      ).zone ?? .init()
    }
  }

  public func deleteZone(_ zone: String) async throws(RPCError) {
    _ = try await client.authorized { (options) async throws(RPCError) in
      try await self.records.deleteZone(.init(name: self.zoneName(zone)), options)
    }
  }

  // MARK: Records

  /// Saves and deletes; one result for each operation. The request id makes a repeat harmless.
  public func modify(
    _ operations: [Record.RecordOperation], policy: Record.SavePolicy = .unspecified,
    atomic: Bool? = nil, requestID: String = MessageID.make()
  ) async throws(RPCError) -> Record.ModifyRecordsResponse {
    var request = Record.ModifyRecordsRequest()
    request.parent = name
    request.operations = operations
    request.savePolicy = policy
    request.atomic = atomic
    request.requestId = requestID
    let ready = request
    return try await client.authorized { (options) async throws(RPCError) in
      try await self.records.modifyRecords(ready, options)
    }
  }

  /// Saves one record and answers with it as stored. An item's error is thrown with its code and
  /// details.
  @discardableResult
  public func save(
    _ record: Record.Record, policy: Record.SavePolicy
  ) async throws(RPCError) -> Record.Record {
    try await save(.init(record: record, savePolicy: policy))
  }

  func save(_ operation: Record.SaveOperation) async throws(RPCError) -> Record.Record {
    let response = try await modify([.init(operation: .save(operation))])
    switch response.results.first?.result {
    case .record(let saved)?: return saved
    case .error(let status)?: throw RPCError(status)
    case .deleted?, nil: throw RPCError(.internalError, "the server sent no result")
    }
  }

  @discardableResult
  public func delete(
    _ record: String, allowMissing: Bool = false
  ) async throws(RPCError) -> Record.DeletedRecord {
    let operation = Record.DeleteOperation(name: record, allowMissing: allowMissing)
    let response = try await modify([.init(operation: .delete(operation))])
    switch response.results.first?.result {
    case .deleted(let deleted)?: return deleted
    case .error(let status)?: throw RPCError(status)
    case .record?, nil: throw RPCError(.internalError, "the server sent no result")
    }
  }

  /// The record of that full name.
  public func record(_ name: String) async throws(RPCError) -> Record.Record {
    try await client.authorized { (options) async throws(RPCError) in
      try await self.records.getRecord(.init(name: name), options).record ?? .init()
    }
  }

  /// The records that match, in the query's order, at most `limit` of them. In one zone, or in
  /// all of the database.
  ///
  /// A server looks only so far for a page as its size is: when one comes short, the next ones
  /// are larger.
  public func query(
    _ query: Record.Query, zone: String? = nil, limit: Int? = nil
  ) async throws(RPCError) -> [Record.Record] {
    var found: [Record.Record] = []
    var token = ""
    var size = 1
    repeat {
      size = max(size, min(1000, (limit ?? .max) - found.count))
      var request = Record.QueryRecordsRequest()
      request.parent = zone.map(zoneName) ?? name
      request.query = query
      request.pageSize = Int32(clamping: size)
      request.pageToken = token
      let ready = request
      let response = try await client.authorized { (options) async throws(RPCError) in
        try await self.records.queryRecords(ready, options)
      }
      found += response.records
      token = response.nextPageToken
      if response.records.count < size { size = min(1000, 2 * size) }
    } while !token.isEmpty && found.count < limit ?? .max
    return limit.map { Array(found.prefix($0)) } ?? found
  }

  /// One page of a query, with what the server read for it.
  public func explain(
    _ query: Record.Query, zone: String? = nil, pageSize: Int = 100
  ) async throws(RPCError) -> Record.QueryRecordsResponse {
    var request = Record.QueryRecordsRequest()
    request.parent = zone.map(zoneName) ?? name
    request.query = query
    request.pageSize = Int32(clamping: pageSize)
    request.explain = true
    let ready = request
    return try await client.authorized { (options) async throws(RPCError) in
      try await self.records.queryRecords(ready, options)
    }
  }

  /// What changed in a zone since a token (empty: ever), with the token for the next time.
  public func changes(
    in zone: String, since token: String = ""
  ) async throws(RPCError) -> (changes: [Record.RecordChange], token: String) {
    var changes: [Record.RecordChange] = []
    var token = token
    while true {
      let since = token
      let response = try await client.authorized { (options) async throws(RPCError) in
        try await self.records.fetchZoneChanges(
          .init(parent: self.zoneName(zone), changeToken: since), options)
      }
      changes += response.changes
      token = response.changeToken
      if !response.moreComing { return (changes, token) }
    }
  }

  /// Live changes of targets (zones and queries), from now on.
  public func watch(_ targets: [Record.SubscribeTarget]) -> RecordWatch {
    RecordWatch(client: client, parent: name, targets: targets)
  }
}

extension VencejoClient {
  /// A database of a container: `private`, `public`, or one that was shared.
  public func database(_ database: String = "private", of container: String) -> RecordDatabase {
    RecordDatabase(client: self, name: "containers/\(container)/databases/\(database)")
  }
}

extension RPCError {
  /// The status of one item of a batch.
  public init(_ status: Record.ItemStatus) {
    self.init(
      StatusCode(rawValue: Int(status.code)), status.message, details: status.details,
      origin: .remote)
  }
}
