import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// The life of one Subscribe call: reset and snapshot where needed, then the log, page by page,
/// asleep whenever it is at its head.
struct RecordSubscription {
  let store: Store
  let hub: RecordHub
  let streams: StreamRegistry
  let configuration: Backend.Configuration
  let principal: Principal
  let caller: RecordCaller
  var feed: RecordFeed
  let keys: Set<String>?
  let out: ResponseWriter<Record.SubscribeResponse>

  /// Events per page of the log, and records per page of a snapshot.
  private static let pageSize = 256

  mutating func run(_ request: Record.SubscribeRequest) async throws {
    let stream = RecordStream(
      loop: out.loop, session: principal.session,
      interval: configuration.heartbeat(asked: request.heartbeatInterval),
      age: configuration.streamAge(of: principal, now: store.now))
    // Checked before the stream counts among those of its session.
    let (database, start, reset, missing, feed) = try await begin(request)
    self.feed = feed
    // From here on no commit goes by unnoticed; the log is read after this.
    hub.add(stream, feed, database: database.key)
    streams.add(stream)
    stream.onLoop { stream.startTimer() }
    defer {
      hub.remove(stream, database: database.key)
      streams.remove(stream)
      stream.onLoop { stream.stop() }
    }
    for (id, error) in missing {
      let status = Record.ItemStatus(RPCError(error, .record))
      try await send(.targetFailed(.init(targetId: id, status: status)), targets: [id])
    }
    if let reset {
      try await send(.reset(.init(reason: reset)), historical: true)
    }
    if reset != nil || (request.includeSnapshot && request.resumeToken.isEmpty) {
      try await sendSnapshot(stream)
    }
    try await follow(stream, from: start, database: database.key)
    try await finish(stream)
  }

  // MARK: Start

  private typealias Start = (
    database: RecordDatabase, position: Int64, reset: Record.ResetReason?,
    missing: [(id: Int32, error: StoreError)], feed: RecordFeed
  )

  /// Where the log is read from, and whether the client has to start afresh.
  private func begin(_ request: Record.SubscribeRequest) async throws -> Start {
    try await store.readRecords(feed.database, caller: caller) {
      [feed, caller] transaction, database -> Start in
      let feed = try feed.prepared(in: database)
      let head = try transaction.head()
      guard !request.resumeToken.isEmpty else {
        return (
          database, head, nil,
          try transaction.missingTargets(of: feed, in: database, caller: caller), feed
        )
      }
      do throws(TokenAuthority.Refusal) {
        let position = try transaction.tokens.position(
          ofSubscriptionToken: request.resumeToken, feed, now: transaction.now)
        // A position that was never reached: the database went back without telling.
        if position > head { throw .otherHistory }
        let floor = (try? transaction.logFloor()) ?? 0
        if position < floor { throw .expired }
        return (database, position, nil, [], feed)
      } catch {
        switch error {
        case .expired: return (database, head, .tokenExpired, [], feed)
        case .otherHistory: return (database, head, .serverRestoredFromBackup, [], feed)
        case .forged: return (database, head, .tokenUnknown, [], feed)
        // The client's mistake; a reset would hide it.
        case .mismatch:
          throw StoreError.invalid(
            "resume_token", "TOKEN_MISMATCH",
            "the resume_token was given out for other targets or another database")
        }
      }
    }
  }

  /// What the targets match now. The log goes on from before it was read: what changes meanwhile
  /// is told again.
  private func sendSnapshot(_ stream: RecordStream) async throws {
    for (index, id) in feed.targetIDs.enumerated() {
      var last: SnapshotPlace?
      repeat {
        let page = try await store.readRecords(feed.database, caller: caller) { [last, feed] in
          try $0.feedSnapshot(feed, target: index, in: $1, after: last, limit: Self.pageSize)
        }
        for record in page.records {
          guard stream.end == nil else { return }
          try await send(
            .recordMatched(.init(record: Record.Record(record, keeping: keys))), targets: [id],
            historical: true)
        }
        last = page.next
      } while last != nil
    }
  }

  // MARK: The log

  /// Until the stream ends.
  private mutating func follow(
    _ stream: RecordStream, from start: Int64, database: Int64
  ) async throws {
    var position = start
    var replayed: Int64 = 0
    var caughtUp = false
    var isReading = false
    var lastSent = ContinuousClock.now
    while stream.end == nil {
      try Task.checkCancellation()
      if !isReading {
        // Commits that do not concern the targets are passed over unread.
        (position, isReading) = hub.next(stream, database: database, position: position)
      }
      if isReading {
        let page = try await store.readRecords(feed.database, caller: caller) { [position, feed] in
          try $0.feedPage(feed, in: $1, after: position, limit: Self.pageSize)
        }
        if page.isReset {
          // What was told before may not be his to know, and what was not may be.
          try await startAfresh(stream)
          position = page.position
          lastSent = .now
          continue
        }
        let count = try await send(page, stream, historical: !caughtUp)
        replayed += count
        position = page.position
        if count > 0 { lastSent = .now }
        guard page.isAtHead else { continue }
        isReading = false
      }
      if !caughtUp {
        caughtUp = true
        try await send(
          .caughtUp(.init(replayedEventCount: replayed)), token: token(position))
        lastSent = .now
      } else if lastSent.duration(to: .now) >= stream.interval {
        try await send(
          .heartbeat(.init(serverTime: Google.Timestamp(microseconds: store.now))),
          token: token(position))
        lastSent = .now
      }
      guard await stream.sleep() == .behind else { return }
    }
  }

  /// Tells everything again, by the rights that count now. The token that ends it is the next
  /// frame's.
  private mutating func startAfresh(_ stream: RecordStream) async throws {
    feed = try await store.readRecords(feed.database, caller: caller) { [feed] in
      try feed.prepared(in: $1)
    }
    try await send(.reset(.init(reason: .accessChanged)), historical: true)
    try await sendSnapshot(stream)
  }

  /// Sends what a page has to tell; the last frame has the token of the page's end, so that the
  /// frames before it are applied together with it. Answers how many there were.
  private func send(
    _ page: FeedPage, _ stream: RecordStream, historical: Bool
  ) async throws -> Int64 {
    var entries = page.entries[...]
    var count: Int64 = 0
    var waiting: Record.SubscribeResponse?
    while !entries.isEmpty {
      let (frames, used) = try await store.readRecords(feed.database, caller: caller) {
        [entries, feed, caller] transaction, database in
        try transaction.frames(entries, of: feed, in: database, caller: caller)
      }
      entries = entries.dropFirst(used)
      for frame in frames {
        // Revoked means not another word, wherever we are.
        guard stream.end == nil else { return count }
        if let waiting { try await out.send(waiting) }
        waiting = Record.SubscribeResponse(
          frame, keeping: keys, historical: historical, store.tokens, now: store.now)
        count += 1
      }
    }
    guard stream.end == nil, var last = waiting else { return count }
    last.resumeToken = token(page.position)
    try await out.send(last)
    return count
  }

  private func send(
    _ event: Record.SubscribeResponse.Event, targets: [Int32] = [], token: String = "",
    historical: Bool = false
  ) async throws {
    var frame = Record.SubscribeResponse()
    frame.event = event
    frame.targetIds = targets
    frame.resumeToken = token
    frame.historical = historical
    try await out.send(frame)
  }

  private func token(_ position: Int64) -> String {
    store.tokens.subscriptionToken(feed, position: position, now: store.now)
  }

  // MARK: End

  private func finish(_ stream: RecordStream) async throws {
    guard let end = stream.end else { throw CancellationError() }
    var event = Record.ClosingEvent()
    event.retryDelay = end.retryDelay
    switch end {
    case .draining: event.reason = .serverDraining
    case .revoked: event.reason = .sessionRevoked
    case .replaced: event.reason = .replacedByNewerStream
    case .aged: event.reason = .maxAge
    // Of the messenger's streams alone.
    case .slow: break
    }
    var frame = Record.SubscribeResponse()
    frame.event = .closing(event)
    let closing = EncodedMessage(frame)
    // Without waiting: who is behind learns it from the status.
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      stream.onLoop {
        stream.stop()
        _ = out.tryWrite(closing)
        continuation.resume()
      }
    }
    if end == .revoked { throw StoreError.sessionRevoked }
  }
}

extension Record.SubscribeRequest {
  /// The targets in the store's words.
  func feed(in database: DatabaseID, caller: RecordCaller) throws(StoreError) -> RecordFeed {
    guard targets.count <= RecordFeed.maxTargets else {
      throw .tooManyTargets
    }
    var parts: [(id: Int32, target: RecordFeed.Target)] = []
    for (index, target) in targets.enumerated() {
      let part = try checking("targets[\(index)]") { () throws(RecordViolation) in
        switch target.target {
        case .zone(let name)?:
          RecordFeed.Target.zone(try ZoneID(parsing: name, caller: caller.user))
        case .query(let query)?:
          RecordFeed.Target.query(try query.stored(in: database, zone: nil, caller: caller))
        case .subscription(let name)?:
          RecordFeed.Target.subscription(
            try SubscriptionID(parsing: name, caller: caller.user), user: caller.key)
        case .database(true)?: RecordFeed.Target.database
        case .database?, nil:
          throw RecordViolation("", "neither a zone, a query, a subscription nor the database")
        }
      }
      parts.append((target.targetId, part))
    }
    return try RecordFeed(database: database, targets: parts)
  }
}

extension Record.SubscribeResponse {
  init(
    _ frame: FeedFrame, keeping keys: Set<String>?, historical: Bool, _ tokens: TokenAuthority,
    now: Int64
  ) {
    self.init()
    targetIds = frame.targets
    commitTime = Google.Timestamp(microseconds: frame.commitTime)
    self.historical = historical
    event =
      switch frame.event {
      case .matched(let record, let isNew, let requestID):
        .recordMatched(
          .init(
            record: Record.Record(record, keeping: keys), reason: isNew ? .creation : .update,
            requestId: requestID))
      case .unmatched(let id): .recordUnmatched(.init(name: id.name))
      case .deleted(let record): .recordDeleted(.init(record: Record.DeletedRecord(record)))
      case .zoneDeleted(let zone):
        .zoneDeleted(.init(zone: .init(name: zone.name, reason: .deleted)))
      case .zoneChanged(let zone):
        .zoneChanged(.init(zone: Record.Zone(zone, tokens, now: now)))
      case .fired(let firing): .firing(.init(firing: Record.Firing(firing)))
      }
  }
}
