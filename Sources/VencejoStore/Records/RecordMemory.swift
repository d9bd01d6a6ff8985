// Requests with a request_id are remembered for 24 hours (AIP-155): who sends
// one again gets the answer of the first, and nothing happens twice. Kept are
// names and errors; the records of the answer are read anew.

extension WriteTransaction {
  private static let rpc = "ModifyRecords"

  /// The answer to the same request before; nil when it is new.
  ///
  /// - Throws: `REQUEST_ID_REUSED` when its content differs.
  func rememberedModify(
    _ batch: ModifyBatch, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> ModifyOutcome? {
    guard !batch.validateOnly else { return nil }
    let answer = try rememberedAnswer(
      user: caller.key, rpc: Self.rpc, requestID: batch.requestID, bodyHash: batch.fingerprint)
    guard let answer else { return nil }
    var reader = KeysetReader(answer)
    var results: [ModifyResult] = []
    var zones: [ZoneID] = []
    for operation in batch.operations {
      let id = operation.id
      guard let failed = reader.int() else { throw .damagedRecord }
      let zone = try? recordZone(id.zone, in: database)
      let row = try zone.flatMap { (zone) throws(StoreError) in
        try recordRow(id.record, zone: zone.key, in: database.id)
      }
      if failed == 0 {
        if zone != nil, !zones.contains(id.zone) { zones.append(id.zone) }
        if case .save = operation, let row, !row.isDeleted {
          results.append(.saved(row.record))
        } else {
          results.append(
            .deleted(row?.tombstone ?? DeletedRecord(id: id, type: "", deleteTime: now)))
        }
      } else {
        guard let failure = Self.failure(&reader, operation, row) else { throw .damagedRecord }
        results.append(.failed(failure))
      }
    }
    var changed: [StoredZone] = []
    for id in zones { changed.append(try recordZone(id, in: database)) }
    return ModifyOutcome(results: results, zones: changed)
  }

  func rememberModify(
    _ batch: ModifyBatch, _ outcome: ModifyOutcome, caller: RecordCaller
  ) throws(StoreError) {
    var writer = KeysetWriter()
    for result in outcome.results {
      guard case .failed(let failure) = result else {
        writer.int(0)
        continue
      }
      writer.int(1)
      writer.int(failure.error.code.number)
      writer.text(failure.error.reason)
      writer.text(failure.error.message)
      writer.int(failure.conflict == nil ? 0 : 1)
      writer.int(Int64(failure.error.metadata.count))
      for (key, value) in failure.error.metadata.sorted(by: { $0.key < $1.key }) {
        writer.text(key)
        writer.text(value)
      }
    }
    try rememberAnswer(
      user: caller.key, rpc: Self.rpc, requestID: batch.requestID, bodyHash: batch.fingerprint,
      answer: writer.bytes)
  }

  private static func failure(
    _ reader: inout KeysetReader, _ operation: RecordOperation, _ row: RecordRow?
  ) -> RecordFailure? {
    guard let number = reader.int(), let code = StoreError.Code(number: number),
      let reason = reader.text(), let message = reader.text(), let hasConflict = reader.int(),
      let count = reader.int(), count >= 0
    else { return nil }
    var metadata: [String: String] = [:]
    for _ in 0..<count {
      guard let key = reader.text(), let value = reader.text() else { return nil }
      metadata[key] = value
    }
    var failure = RecordFailure(StoreError(code, reason, message, metadata: metadata))
    if hasConflict == 1 {
      var client: StoredRecord?
      if case .save(let record, _, _) = operation { client = record }
      failure.conflict = RecordFailure.Conflict(
        server: row.flatMap { $0.isDeleted ? nil : $0.record }, client: client)
    }
    return failure
  }
}

extension StoreError.Code {
  /// gRPC's numbers.
  fileprivate var number: Int64 {
    switch self {
    case .invalidArgument: 3
    case .notFound: 5
    case .alreadyExists: 6
    case .permissionDenied: 7
    case .resourceExhausted: 8
    case .failedPrecondition: 9
    case .aborted: 10
    case .outOfRange: 11
    case .internalError: 13
    case .unavailable: 14
    case .dataLoss: 15
    case .unauthenticated: 16
    }
  }

  fileprivate init?(number: Int64) {
    let codes: [StoreError.Code] = [
      .invalidArgument, .notFound, .alreadyExists, .permissionDenied, .resourceExhausted,
      .failedPrecondition, .aborted, .outOfRange, .internalError, .unavailable, .dataLoss,
      .unauthenticated,
    ]
    guard let code = codes.first(where: { $0.number == number }) else { return nil }
    self = code
  }
}
