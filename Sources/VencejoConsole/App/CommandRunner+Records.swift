import Glibc
import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoRPC
import VencejoTools

extension CommandRunner {
  var database: RecordDatabase { client.database(place.database, of: place.container) }

  var zone: String { place.zone.isEmpty ? RecordDatabase.defaultZone : place.zone }

  var translation: RecordTranslation {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return RecordTranslation(
      zone: database.zoneName(zone), now: (Int64(now.tv_sec), Int32(now.tv_nsec)))
  }

  // MARK: Place

  func use(_ chosen: Command.Place) async throws {
    switch chosen {
    case .container(let name):
      place.container = name
      place.zone = ""
      completer.containers = Array(Set(completer.containers).union([name]))
    case .database(let database):
      place.database = database.rawValue
      place.zone = ""
    case .zone(let name): place.zone = name
    }
    profile.place = place
    await note("container \(place.container), \(place.database) database, zone \(zone)")
  }

  func zones() async throws {
    let zones = try await database.zones()
    completer.zones = zones.map { Self.last($0.name) }
    if json {
      for zone in zones { await display.json(JSONLine.text(zone)) }
      return
    }
    var table = Table(columns: [
      .init(title: "Zone", shrinks: true, style: .strong), .init(title: "Made"),
      .init(title: "In use", style: .badge),
    ])
    table.rows = zones.map { zone in
      [
        Self.last(zone.name), zone.createTime.map { TimeText.local.full($0.seconds) } ?? "",
        Self.last(zone.name) == self.zone ? "✓" : "",
      ]
    }
    await display.show(table.lines(width: await display.width))
  }

  func newZone(_ name: String) async throws {
    let zone = try await database.createZone(name)
    place.zone = name
    profile.place = place
    await show(zone, [StyledText("zone \(VisibleText.clean(name)), now in use", .faint)])
  }

  func deleteZone(_ name: String) async throws {
    try await database.deleteZone(name)
    if place.zone == name {
      place.zone = ""
      profile.place = place
    }
    if !json { await display.show([StyledText("zone \(VisibleText.clean(name)) deleted", .faint)]) }
  }

  private static func last(_ name: String) -> String {
    String(name.split(separator: "/").last ?? "")
  }

  // MARK: Records

  func put(_ put: Command.Put) async throws {
    let translation = translation
    var record = Record.Record()
    record.name = translation.recordName(put.name ?? MessageID.make())
    record.recordType = put.type
    record.fields = put.fields.mapValues(translation.value)
    let policy: Record.SavePolicy
    switch put.policy {
    case .merge: policy = .allKeys
    case .create: policy = .ifServerRecordUnchanged
    case .replace: policy = .replace
    case .ifTag(let tag):
      record.changeTag = tag
      policy = .ifServerRecordUnchanged
    }
    let saved = try await database.save(record, policy: policy)
    learn([saved])
    await show(saved, [RecordView.line("saved", translation.row(saved))])
  }

  func get(_ name: String) async throws {
    let translation = translation
    let record = try await database.record(translation.recordName(name))
    learn([record])
    await show(record, RecordView.details(translation.row(record), time: .local))
  }

  func delete(_ name: String) async throws {
    let deleted = try await database.delete(translation.recordName(name))
    completer.recordNames.removeAll { $0 == name }
    await show(deleted, [StyledText("deleted \(VisibleText.clean(name))", .faint)])
  }

  func query(_ query: RecordQuery) async throws {
    let translation = translation
    let records = try await database.query(
      translation.query(query), zone: zone, limit: query.limit ?? 1000)
    learn(records)
    if json {
      for record in records { await display.json(JSONLine.text(record)) }
      return
    }
    if records.isEmpty { return await display.show([StyledText("no such records", .faint)]) }
    await display.show(
      RecordView.table(records.map(translation.row), width: await display.width))
  }

  func explain(_ query: RecordQuery) async throws {
    let page = try await database.explain(
      translation.query(query), zone: zone, pageSize: query.limit ?? 100)
    let explanation = page.explanation ?? .init()
    if json { return await display.json(JSONLine.text(explanation)) }
    await display.show(RecordView.explanation(explanation, records: page.records.count))
  }

  func changes(all: Bool) async throws {
    let translation = translation
    let key = database.zoneName(zone)
    let (changes, token) = try await database.changes(
      in: zone, since: all ? "" : changeTokens[key] ?? "")
    changeTokens[key] = token
    if json {
      for change in changes { await display.json(JSONLine.text(change)) }
      return
    }
    if changes.isEmpty { return await display.show([StyledText("nothing changed", .faint)]) }
    await display.show(
      changes.map { change in
        switch change.change {
        case .changed(let record)?: RecordView.line("saved", translation.row(record))
        case .deleted(let deleted)?: Self.line(deleted, translation)
        case nil: StyledText()
        }
      })
  }

  private static func line(
    _ deleted: Record.DeletedRecord, _ translation: RecordTranslation
  ) -> StyledText {
    RecordView.line(
      "deleted",
      .init(
        name: translation.shortName(deleted.name), type: deleted.recordType, fields: [:]))
  }

  private func learn(_ records: [Record.Record]) {
    completer.recordTypes = Array(Set(completer.recordTypes).union(records.map(\.recordType)))
    completer.fields = Array(
      Set(completer.fields).union(records.flatMap(\.fields.keys)).prefix(200))
    let names = records.map { translation.shortName($0.name) }
    completer.recordNames = Array(Set(completer.recordNames).union(names).prefix(500))
  }

  // MARK: Watching

  /// With a limit the command waits for its events. Without one they are shown as they come, or
  /// kept for `wait`.
  func watch(_ target: Command.WatchTarget, _ limit: Command.Limit) async throws {
    let translation = translation
    var wanted = Record.SubscribeTarget(targetId: 1)
    switch target {
    case .zone(let name): wanted.target = .zone(database.zoneName(name ?? zone))
    case .query(let query): wanted.target = .query(translation.query(query))
    }
    let isBounded = limit.count != nil || limit.timeout != nil
    let watch = RecordWatcher(
      watch: database.watch([wanted]), translation: translation, limit: limit.count)
    let blocking = isBounded && mode == .script
    let task = Task {
      await watch.run { [weak self] event in await self?.arrived(event, blocking: blocking) }
    }
    if !blocking { watches.append(Task { await self.supervise(task) }) }
    do {
      try await watch.waitUntilLive(within: .seconds(10))
    } catch {
      task.cancel()
      throw error
    }
    let timer = limit.timeout.map { seconds in
      Task {
        try await Task.sleep(for: .milliseconds(Int(seconds * 1000)))
        task.cancel()
      }
    }
    guard blocking else { return await note("watching; unwatch ends it") }
    await display.complain([StyledText("watching", .faint)])
    let outcome = await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    timer?.cancel()
    if Task.isCancelled { return }
    switch outcome {
    case .reachedLimit: break
    case .cancelled(let seen):
      if let count = limit.count {
        throw Failure("\(seen) of \(count) changes came in time", exitCode: ExitCode.timeout)
      }
    case .failed(let error): throw error
    }
  }

  /// Shows why a watch in the background ended.
  private func supervise(_ task: Task<RecordWatcher.Outcome, Never>) async {
    let outcome = await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    if case .failed(let error) = outcome, !Task.isCancelled {
      await display.complain(Failure(error, line: "").report.lines(width: await display.width))
    }
  }

  func unwatch() async {
    for task in watches { task.cancel() }
    watches = []
  }
}
