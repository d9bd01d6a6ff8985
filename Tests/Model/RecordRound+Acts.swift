import VencejoAPI
import VencejoProtobuf
import VencejoRPC

extension RecordRound {
  /// One random thing, done to the server and to the model.
  func act() async throws {
    let user = pick(0..<followers.count)
    switch pick(0..<116) {
    // Few places, so that what people do meets: two own zones, and everybody is a guest.
    case 0..<5: try await makeZone(user % 2)
    case 5..<6: try await deleteZone()
    case 6..<46: try await save(user)
    case 46..<52: try await delete(user)
    case 52..<60: try await share()
    case 60..<74: try await accept(user)
    case 74..<75: try await leave()
    case 75..<78: try await changePeople()
    case 78..<80: try await endShare()
    case 80..<95:
      log("user \(user) follows")
      try await sync(user, &followers[user], pages: pick(1..<3), pageSize: Int32(pick(1..<5)))
    case 95..<96: followers[user] = Follower()
    case 100..<106: try await download()
    case 106..<109: try await export()
    case 109..<111: try await copyZone()
    case 111..<113: try await deploy()
    case 113..<116: try await changeEnvironment()
    default:
      if let zone = any(model.zones.keys.filter { model.seesAnything(user, of: $0) }.sorted()) {
        try await query(user, zone)
      }
    }
  }

  private func place(_ zone: String) -> String {
    zone.split(separator: "/").prefix(4).joined(separator: "/")
  }

  /// A zone that the user may not see is not asked for: who sees nothing has nothing to lose.
  private func zone(of user: Int) -> String? {
    any(model.zones.keys.filter { model.seesAnything(user, of: $0) }.sorted())
  }

  private func makeZone(_ user: Int) async throws {
    let id = "z\(pick(0..<2))"
    do {
      let made = try await records.createZone(
        .init(parent: Self.database, zoneId: id), options(user))
      let name = made.zone?.name ?? ""
      log("user \(user) makes \(name)")
      if model.zones[name] != nil { fault("\(name) was made twice") }
      model.zones[name] = [:]
      model.owners[name] = user
    } catch {
      guard error.code == .alreadyExists else { throw error }
    }
  }

  private func deleteZone() async throws {
    guard let name = any(model.zones.keys.sorted()), let owner = model.owners[name] else { return }
    log("user \(owner) deletes \(name)")
    model.deleteZone(name)
    _ = try await records.deleteZone(.init(name: name), options(owner))
  }

  private func save(_ user: Int) async throws {
    guard let zone = zone(of: user) else { return }
    let name = "r\(pick(0..<8))"
    var note = RecordModel.Note(number: pick(0..<12))
    if pick(0..<3) > 0 {
      note.parent = any(model.view(user, zone).keys.sorted()) ?? "r\(pick(0..<8))"
    }
    if pick(0..<6) == 0 { note.extra = "x\(pick(0..<4))" }
    switch pick(0..<12) {
    case 0..<2: note.file = try await upload(user)
    case 2: note.file = any(model.files.keys.sorted()) ?? ""
    default: break
    }
    let isTaken =
      (note.file.isEmpty || model.mayUse(user, note.file, zone, name))
      && (!model.isProduction || model.isDeployed(note))
    let expected = isTaken && model.save(user, zone, name, note)
    log(
      "user \(user) saves \(name) under '\(note.parent)' in \(zone.suffix(8))"
        + " with \(note.fields): \(expected)")
    var record = Record.Record(
      name: "\(zone)/records/\(name)", recordType: "Note",
      fields: ["n": .init(kind: .int64Value(Int64(note.number)))])
    if !note.extra.isEmpty { record.fields[note.extra] = .init(kind: .int64Value(1)) }
    if !note.file.isEmpty {
      record.fields["file"] = .init(kind: .assetValue(.init(assetId: note.file)))
    }
    if !note.parent.isEmpty { record.parent = .init(record: "\(zone)/records/\(note.parent)") }
    let response = try await records.modifyRecords(
      .init(
        parent: place(zone),
        operations: [.init(operation: .save(.init(record: record, savePolicy: .replace)))]),
      options(user))
    if !world.hasCrashed, response.complete != expected {
      fault("saving \(name) was \(response.complete ? "done" : "refused"): \(response.results)")
    }
  }

  private func delete(_ user: Int) async throws {
    guard let zone = zone(of: user) else { return }
    let name = "r\(pick(0..<8))"
    let expected = model.delete(user, zone, name)
    log("user \(user) deletes \(name) in \(zone.suffix(8)): \(expected)")
    let response = try await records.modifyRecords(
      .init(
        parent: place(zone),
        operations: [.init(operation: .delete(.init(name: "\(zone)/records/\(name)")))]),
      options(user))
    if !world.hasCrashed, response.complete != expected {
      fault("deleting \(name) was \(response.complete ? "done" : "refused")")
    }
  }

  private func share() async throws {
    guard let zone = any(model.zones.keys.sorted()), let owner = model.owners[zone] else { return }
    let some = any(model.zones[zone]?.keys.sorted() ?? []) ?? "r\(pick(0..<8))"
    let top = pick(0..<8) == 0 ? "" : some
    let expected = model.mayShare(zone, top)
    let guests = followers.indices.filter { $0 != owner && pick(0..<3) > 0 }
    let writers = guests.filter { _ in pick(0..<2) == 0 }
    log("user \(owner) shares '\(top)' of \(zone.suffix(8)): \(expected)")
    do {
      let made = try await records.createShare(
        .init(
          parent: Self.database,
          share: .init(
            scope: top.isEmpty ? .zone(zone) : .rootRecord("\(zone)/records/\(top)"),
            participants: guests.map {
              .init(
                user: names[$0], permission: writers.contains($0) ? .readWrite : .readOnly)
            })), options(owner))
      if !expected { fault("'\(top)' was shared") }
      var share = RecordModel.Share(
        name: made.share?.name ?? "", link: made.share?.link ?? "", zone: zone, root: top)
      for guest in guests { share.people[guest] = (writers.contains(guest), false) }
      model.shares.append(share)
    } catch {
      if expected, !world.hasCrashed { fault("'\(top)' was not shared: \(error)") }
    }
  }

  private func accept(_ user: Int) async throws {
    let invited = model.shares.indices.filter { model.shares[$0].people[user]?.isIn == false }
    guard let index = any(invited) else { return }
    log("user \(user) accepts \(model.shares[index].root)")
    let link = model.shares[index].link
    model.shares[index].people[user]?.isIn = true
    _ = try await records.acceptShare(.init(link: link), options(user))
  }

  private func leave() async throws {
    let taken = model.shares.indices.filter { !model.shares[$0].people.isEmpty }
    guard let index = any(taken), let user = any(model.shares[index].people.keys.sorted()) else {
      return
    }
    log("user \(user) leaves \(model.shares[index].root)")
    let name = model.shares[index].name
    model.shares[index].people[user] = nil
    _ = try await records.deleteShare(.init(name: name), options(user))
  }

  /// The owner takes some out, brings some in, and lets some write or not.
  private func changePeople() async throws {
    guard let index = any(model.shares.indices), let owner = model.owners[model.shares[index].zone]
    else { return }
    let name = model.shares[index].name
    let share = try await records.getShare(.init(name: name), options(owner)).share ?? .init()
    var people: [Int: (writes: Bool, isIn: Bool)] = [:]
    for guest in followers.indices where guest != owner && pick(0..<3) > 0 {
      people[guest] = (pick(0..<2) == 0, model.shares[index].people[guest]?.isIn ?? false)
    }
    log("user \(owner) lets \(people.keys.sorted()) see \(share.name.suffix(4))")
    model.shares[index].people = people
    var changed = share
    changed.participants = people.sorted { $0.key < $1.key }.map {
      .init(user: names[$0.key], permission: $0.value.writes ? .readWrite : .readOnly)
    }
    _ = try await records.updateShare(
      .init(share: changed, updateMask: .init(paths: ["participants"])), options(owner))
  }

  private func endShare() async throws {
    guard let index = any(model.shares.indices), let owner = model.owners[model.shares[index].zone]
    else { return }
    log("user \(owner) ends the share of '\(model.shares[index].root)'")
    let name = model.shares.remove(at: index).name
    _ = try await records.deleteShare(.init(name: name), options(owner))
  }
}
