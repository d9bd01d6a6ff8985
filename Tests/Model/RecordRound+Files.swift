import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

// Files in records, exports, imports, and the schema of production.
extension RecordRound {
  /// Not while the server is about to die: what needs several commits would be done in part.
  private var isSafe: Bool { !isArmed }

  // MARK: Files

  func upload(_ user: Int) async throws -> String {
    let content = [UInt8]("file \(pick(0..<1_000_000))".utf8)
    let call = records.uploadAsset(options(user))
    try await call.send(
      .init(
        payload: .header(
          .init(
            uploadId: "\(UUID.v7())", fileName: "a.txt", contentType: "text/plain",
            sizeBytes: Int64(content.count), sha256: SHA256.digest(content)))))
    try await call.send(.init(payload: .chunk(content)))
    call.finish()
    let id = try await call.response.asset?.assetId ?? ""
    model.files[id] = .init(user: user, content: content)
    return id
  }

  func download() async throws {
    guard let zone = any(model.zones.keys.sorted()),
      let name = any(model.zones[zone]?.keys.sorted() ?? []), let note = model.zones[zone]?[name]
    else { return }
    let user = pick(0..<followers.count)
    let mayRead = model.mayRead(user, zone, name) && !note.file.isEmpty
    log("user \(user) downloads the file of \(name) in \(zone.suffix(8)): \(mayRead)")
    var content: [UInt8] = []
    do {
      for try await frame in records.downloadAsset(
        .init(record: "\(zone)/records/\(name)", field: "file"), options(user))
      {
        if case .chunk(let bytes)? = frame.payload { content += bytes }
      }
    } catch {
      if !world.hasCrashed, mayRead || ![.notFound, .permissionDenied].contains(error.code) {
        fault("the file of \(name) is refused: \(error)")
      }
      return
    }
    if !world.hasCrashed, !mayRead || content != model.files[note.file]?.content {
      fault("the file of \(name) for user \(user) is \(content.count) bytes")
    }
  }

  // MARK: Out and in

  private func frames(_ zone: String, _ user: Int) async throws -> [Record.ExportRecordsResponse] {
    var frames: [Record.ExportRecordsResponse] = []
    for try await frame in records.exportRecords(
      .init(parent: zone, includeAssets: true), options(user))
    {
      frames.append(frame)
    }
    return frames
  }

  /// An export is what the zone holds, with its files; and only its owner's.
  func export() async throws {
    guard let zone = any(model.zones.keys.sorted()), let owner = model.owners[zone] else { return }
    let user = pick(0..<followers.count)
    log("user \(user) exports \(zone.suffix(8))")
    let told: [Record.ExportRecordsResponse]
    do {
      told = try await frames(zone, user)
    } catch {
      if !world.hasCrashed, user == owner { fault("the export is refused: \(error)") }
      return
    }
    if world.hasCrashed { return }
    guard user == owner else { return fault("user \(user) exports what is user \(owner)'s") }
    check(told, zone)
  }

  private func check(_ told: [Record.ExportRecordsResponse], _ zone: String) {
    var notes: [String: RecordModel.Note] = [:]
    var bytes: [String: [UInt8]] = [:]
    var id = ""
    for frame in told {
      switch frame.payload {
      case .record(let record)?:
        notes[Self.last(record.name)] = RecordModel.Note(record)
      case .assetPart(let part)?:
        if let asset = part.asset { id = asset.assetId }
        bytes[id, default: []] += part.data
      default: break
      }
    }
    if notes != model.zones[zone] {
      fault("the export of \(zone) is \(notes), and should be \(model.zones[zone] ?? [:])")
    }
    for note in notes.values where !note.file.isEmpty {
      if bytes[note.file] != model.files[note.file]?.content {
        fault("the export of \(zone) lacks the file of \(note)")
      }
    }
  }

  /// The second user's zones, so that nothing fires: an export goes into a zone of its own, where
  /// it is the same, but for what is bound to something that is gone.
  func copyZone() async throws {
    guard isSafe else { return }
    let own = model.zones.keys.filter { model.owners[$0] == 1 && !$0.hasSuffix("/copy") }.sorted()
    guard let zone = any(own), let notes = model.zones[zone] else { return }
    if model.isProduction, !notes.values.allSatisfy({ model.isDeployed($0) }) { return }
    let copy = zone.split(separator: "/").dropLast().joined(separator: "/") + "/copy"
    if model.zones[copy] != nil {
      model.deleteZone(copy)
      _ = try await records.deleteZone(.init(name: copy), options(1))
    }
    log("user 1 copies \(zone.suffix(8))")
    let told = try await frames(zone, 1)
    check(told, zone)
    var expected: [String: RecordModel.Note] = [:]
    while let next = notes.first(where: {
      expected[$0.key] == nil && ($0.value.parent.isEmpty || expected[$0.value.parent] != nil)
    }) {
      expected[next.key] = next.value
    }
    let call = records.importRecords(options(1))
    try await call.send(.init(payload: .header(.init(parent: copy))))
    for frame in told {
      switch frame.payload {
      case .record(let record)?: try await call.send(.init(payload: .record(record)))
      case .assetPart(let part)?: try await call.send(.init(payload: .assetPart(part)))
      default: break
      }
    }
    call.finish()
    let answer = try await call.response
    if notes.isEmpty { return }
    model.zones[copy] = expected
    model.owners[copy] = 1
    if answer.importedCount != Int64(expected.count)
      || answer.failedCount != Int64(notes.count - expected.count)
    {
      fault("imported \(answer), of \(notes.count) should be \(expected.count)")
    }
    // Its files are others, with the same bytes.
    let copied = try await frames(copy, 1)
    for case .record(let record)? in copied.map(\.payload) {
      guard case .assetValue(let asset)? = record.fields["file"]?.kind else { continue }
      let name = Self.last(record.name)
      guard let old = expected[name].flatMap({ model.files[$0.file] }),
        SHA256.digest(old.content) == asset.sha256
      else {
        fault("the copy of \(name) has another file")
        continue
      }
      model.files[asset.assetId] = .init(user: 1, content: old.content)
      model.zones[copy]?[name]?.file = asset.assetId
    }
    check(copied, copy)
  }

  // MARK: Schemas

  func deployed() async throws -> Set<String> {
    let schema = try await records.getSchema(
      .init(container: "containers/model", environment: .production), options(0)
    ).schema
    let type = schema?.recordTypes.first { $0.recordType == "Note" }
    return Set(type?.fields.map(\.field) ?? [])
  }

  /// Production grows by what development has.
  func deploy() async throws {
    guard isSafe else { return }
    log("the schema is deployed")
    _ = try await records.deploySchema(.init(container: "containers/model"), options(0))
    let now = try await deployed()
    let used = Set(model.zones.values.flatMap { $0.values.flatMap(\.fields) })
    if !model.isProduction, !now.isSuperset(of: used) {
      fault("of \(used) only \(now) is deployed")
    }
    if !now.isSuperset(of: model.deployed) { fault("\(model.deployed) shrank to \(now)") }
    model.deployed = now
  }

  func changeEnvironment() async throws {
    let isProduction = pick(0..<3) == 0 && model.deployed.contains("n")
    log(isProduction ? "production counts" : "development counts")
    model.isProduction = isProduction
    _ = try await records.updateContainer(
      .init(
        container: .init(
          name: "containers/model", environment: isProduction ? .production : .development),
        updateMask: .init(paths: ["environment"])), options(0))
  }
}

extension RecordModel.Note {
  init?(_ record: Record.Record) {
    guard case .int64Value(let number)? = record.fields["n"]?.kind else { return nil }
    self.init(number: Int(number), parent: RecordRound.last(record.parent?.record ?? ""))
    if case .assetValue(let asset)? = record.fields["file"]?.kind { file = asset.assetId }
    extra = record.fields.keys.filter { $0.hasPrefix("x") }.sorted().joined(separator: " ")
  }
}
