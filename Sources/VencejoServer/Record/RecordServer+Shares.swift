import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Sharing, and the shared database.
extension RecordServer {
  /// The container of `containers/{container}/databases/shared`; nil for another database.
  func sharedContainer(_ parent: String) throws(StoreError) -> String? {
    let suffix = "/databases/shared"
    guard parent.hasPrefix("containers/"), parent.hasSuffix(suffix) else { return nil }
    let container = String(parent.dropFirst("containers/".count).dropLast(suffix.count))
    // Checks the name.
    return try checking("parent") { () throws(RecordViolation) in
      try DatabaseID(container: container, database: DatabaseID.publicName).container
    }
  }

  func sharedZones(
    _ container: String, _ request: Record.ListZonesRequest, _ size: Int, _ caller: RecordCaller
  ) async throws -> Record.ListZonesResponse {
    try await store.read { transaction in
      let all = try transaction.sharedZones(container: container, caller: caller)
      var arguments = KeysetWriter()
      arguments.text("shared zones")
      arguments.text(container)
      var start = 0
      if !request.pageToken.isEmpty {
        var keyset = try transaction.tokens.keyset(
          ofPageToken: request.pageToken, arguments: arguments)
        guard let name = keyset.text(), keyset.isAtEnd else { throw TokenAuthority.badPageToken }
        start = all.firstIndex { $0.id.name > name } ?? all.count
      }
      let page = all[start...].prefix(size)
      var response = Record.ListZonesResponse()
      response.zones = page.map { Record.Zone($0, transaction.tokens, now: transaction.now) }
      if page.endIndex < all.endIndex, let last = page.last {
        var keyset = KeysetWriter()
        keyset.text(last.id.name)
        response.nextPageToken = transaction.tokens.pageToken(
          keyset: keyset, arguments: arguments)
      }
      return response
    }
  }

  func sharedChanges(
    _ container: String, _ request: Record.FetchDatabaseChangesRequest, _ size: Int,
    _ caller: RecordCaller
  ) async throws -> Record.FetchDatabaseChangesResponse {
    try await store.read { transaction in
      let (tokens, now) = (transaction.tokens, transaction.now)
      let position = try tokens.position(
        ofSharedToken: request.changeToken, container: container, user: caller.user, now: now)
      let changes = try transaction.sharedChanges(
        container: container, after: position, pageSize: size, caller: caller)
      return Record.FetchDatabaseChangesResponse(
        changedZones: changes.changed.map { Record.Zone($0, tokens, now: now) },
        deletedZones: changes.lost.map {
          .init(name: $0.zone.name, reason: $0.isDeleted ? .deleted : .accessLost)
        },
        changeToken: tokens.sharedToken(
          container: container, user: caller.user, position: changes.position, now: now),
        moreComing: changes.moreComing)
    }
  }

  // MARK: Shares

  func createShare(
    _ request: Record.CreateShareRequest, _ context: ServerContext
  ) async throws -> Record.CreateShareResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let database = try database(request.parent, caller)
      let given = request.share ?? .init()
      let root: RecordID?
      let place: ZoneID
      switch given.scope {
      case .zone(let name)?:
        root = nil
        place = try zone(name, "share.zone", caller)
      case .rootRecord(let name)?:
        let id = try checking("share.root_record") { () throws(RecordViolation) in
          try RecordID(parsing: name, caller: caller.user)
        }
        root = id
        place = id.zone
      case nil: throw StoreError(RecordViolation("share.scope", "neither a zone nor a record"))
      }
      guard place.database == database else {
        throw StoreError(RecordViolation("share.scope", "\(place) is not in \(database)"))
      }
      let change = try given.change(Mask(nil, of: Record.Share.changeable), caller)
      return try await store.writeRecords(database, caller: caller) {
        try change.check($0)
        return .init(
          share: .init(
            try $0.createShare(place, root: root, change, in: $1, caller: caller), for: caller))
      }
    }
  }

  func getShare(
    _ request: Record.GetShareRequest, _ context: ServerContext
  ) async throws -> Record.GetShareResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try share(request.name, caller)
      return try await store.read {
        .init(share: .init(try $0.share(id, caller: caller), for: caller))
      }
    }
  }

  func listShares(
    _ request: Record.ListSharesRequest, _ context: ServerContext
  ) async throws -> Record.ListSharesResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let size = try pageSize(request.pageSize)
      let container = try sharedContainer(request.parent)
      let id = container == nil ? try database(request.parent, caller) : nil
      return try await store.read { transaction in
        var arguments = KeysetWriter()
        arguments.text("shares")
        arguments.text(request.parent)
        var after = ""
        if !request.pageToken.isEmpty {
          var keyset = try transaction.tokens.keyset(
            ofPageToken: request.pageToken, arguments: arguments)
          guard let share = keyset.text(), keyset.isAtEnd else {
            throw TokenAuthority.badPageToken
          }
          after = share
        }
        var found: [RecordShare]
        if let id {
          found = try transaction.shares(in: id, after: after, limit: size + 1, caller: caller)
        } else {
          found = try transaction.sharesWith(
            caller, container: container ?? "", after: after, limit: size + 1)
        }
        var response = Record.ListSharesResponse()
        if found.count > size {
          found.removeLast()
          var keyset = KeysetWriter()
          keyset.text(found.last?.id.share ?? "")
          response.nextPageToken = transaction.tokens.pageToken(
            keyset: keyset, arguments: arguments)
        }
        response.shares = found.map { .init($0, for: caller) }
        return response
      }
    }
  }

  func updateShare(
    _ request: Record.UpdateShareRequest, _ context: ServerContext
  ) async throws -> Record.UpdateShareResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let given = request.share ?? .init()
      let id = try share(given.name, caller, field: "share.name")
      let mask = try Mask(request.updateMask, of: Record.Share.changeable + ["link"])
      var change = try given.change(mask, caller)
      // Without a mask nobody means to make the link another one.
      change.rotatesLink = request.updateMask?.paths.contains("link") ?? false
      return try await store.write { [change] in
        try change.check($0)
        return .init(
          share: .init(
            try $0.updateShare(id, etag: given.etag, change, caller: caller), for: caller))
      }
    }
  }

  func deleteShare(
    _ request: Record.DeleteShareRequest, _ context: ServerContext
  ) async throws -> Record.DeleteShareResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try share(request.name, caller)
      try await store.write { try $0.deleteShare(id, etag: request.etag, caller: caller) }
      return .init()
    }
  }

  func resolveShareLink(
    _ request: Record.ResolveShareLinkRequest, _ context: ServerContext
  ) async throws -> Record.ResolveShareLinkResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let share = try await store.read { try $0.share(link: request.link) }
      let me = share.participants.first { $0.user == caller.user }
      var response = Record.ResolveShareLinkResponse()
      response.share = share.id.name
      response.title = share.title
      response.owner = "users/\(share.owner)"
      response.permission = .init(share.permission(of: caller.user) ?? share.publicPermission)
      if let me { response.acceptanceStatus = me.isAccepted ? .accepted : .pending }
      response.rootRecord = share.root?.name ?? ""
      response.zone = share.zone.name
      return response
    }
  }

  func acceptShare(
    _ request: Record.AcceptShareRequest, _ context: ServerContext
  ) async throws -> Record.AcceptShareResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      guard request.link.isEmpty != request.name.isEmpty else {
        throw StoreError(RecordViolation("link", "give the link, or the name of the share"))
      }
      let id = request.name.isEmpty ? nil : try share(request.name, caller)
      return try await store.write {
        .init(
          share: .init(
            try $0.acceptShare(link: request.link, id: id, caller: caller), for: caller))
      }
    }
  }

  private func share(
    _ name: String, _ caller: RecordCaller, field: String = "name"
  ) throws(StoreError) -> ShareID {
    try checking(field) { () throws(RecordViolation) in
      try ShareID(parsing: name, caller: caller.user)
    }
  }
}

extension ShareChange {
  /// Throws when a participant does not exist.
  fileprivate func check(_ transaction: ReadTransaction) throws(StoreError) {
    for one in participants ?? [] {
      guard try transaction.isUser(one.user) else {
        throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: "users/\(one.user)")
      }
    }
  }
}

extension Record.Share {
  fileprivate static let changeable = [
    "public_permission", "participants", "title", "share_type", "link_expire_time",
  ]

  fileprivate func change(
    _ mask: Mask, _ caller: RecordCaller
  ) throws(StoreError) -> ShareChange {
    var change = ShareChange()
    if mask.has("public_permission") {
      change.publicPermission =
        publicPermission == .unspecified
        ? SharePermission.none
        : try publicPermission.stored("share.public_permission")
    }
    if mask.has("title") { change.title = title }
    if mask.has("share_type") { change.type = shareType }
    if mask.has("link_expire_time") {
      change.linkExpireTime = linkExpireTime?.microseconds ?? 0
    }
    guard mask.has("participants") else { return change }
    var stored: [ShareParticipant] = []
    for one in participants where one.role != .owner {
      let field = "share.participants"
      guard one.user.hasPrefix("users/"), one.user.utf8.count <= 128 else {
        throw StoreError(RecordViolation(field, "expected users/{user}"))
      }
      let role: ShareRole
      switch one.role {
      case .administrator: role = .administrator
      case .unspecified, .privateUser: role = .privateUser
      case .publicUser: role = .publicUser
      default: throw StoreError(RecordViolation(field, "not a known role"))
      }
      let user = String(one.user.dropFirst("users/".count))
      stored.append(
        ShareParticipant(
          user: user == "me" ? caller.user : user, role: role,
          permission: one.permission == .unspecified
            ? .readOnly : try one.permission.stored(field)))
    }
    change.participants = stored
    return change
  }

  init(_ share: RecordShare, for caller: RecordCaller) {
    self.init()
    name = share.id.name
    scope = share.root.map { .rootRecord($0.name) } ?? .zone(share.zone.name)
    publicPermission = .init(share.publicPermission)
    owner = "users/\(share.owner)"
    participants =
      [.init(user: owner, role: .owner, permission: .readWrite, acceptanceStatus: .accepted)]
      + share.participants.map { one in
        .init(
          user: "users/\(one.user)", role: .init(rawValue: Int32(one.role.rawValue)),
          permission: .init(
            one.role == .publicUser ? share.publicPermission : one.permission),
          acceptanceStatus: one.isAccepted ? .accepted : .pending,
          addTime: Google.Timestamp(microseconds: one.addTime))
      }
    title = share.title
    shareType = share.type
    link = share.link
    createTime = Google.Timestamp(microseconds: share.createTime)
    updateTime = Google.Timestamp(microseconds: share.updateTime)
    etag = share.etag
    if share.linkExpireTime != 0 {
      linkExpireTime = Google.Timestamp(microseconds: share.linkExpireTime)
    }
  }
}

extension Record.SharePermission {
  init(_ permission: VencejoStore.SharePermission) {
    switch permission {
    case .none: self = .noneValue
    case .readOnly: self = .readOnly
    case .readWrite: self = .readWrite
    }
  }

  fileprivate func stored(_ field: String) throws(StoreError) -> VencejoStore.SharePermission {
    guard let known = VencejoStore.SharePermission(rawValue: Int64(rawValue)) else {
      throw StoreError(RecordViolation(field, "not a known permission"))
    }
    return known
  }
}
