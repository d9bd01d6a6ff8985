import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Containers and their schemas.
extension RecordServer {
  func container(_ name: String, _ field: String) throws(StoreError) -> String {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "containers", !parts[1].isEmpty else {
      throw StoreError(RecordViolation(field, "expected containers/{container}"))
    }
    return String(parts[1])
  }

  private func change(
    _ container: Record.Container, _ mask: Mask
  ) throws(StoreError) -> ContainerChange {
    var change = ContainerChange()
    if mask.has("display_name") { change.displayName = container.displayName }
    if mask.has("environment") {
      switch container.environment {
      case .production: change.environment = .production
      case .development, .unspecified: change.environment = .development
      default:
        throw StoreError(RecordViolation("container.environment", "not a known environment"))
      }
    }
    if mask.has("administrators") {
      change.administrators = try users(container.administrators, "container.administrators")
    }
    if mask.has("limits"), let quota = container.limits?.maxDatabaseBytes, quota != 0 {
      change.quota = quota
    }
    return change
  }

  fileprivate func users(_ names: [String], _ field: String) throws(StoreError) -> [String] {
    var users: [String] = []
    for name in names {
      guard name.hasPrefix("users/"), name.utf8.count <= 128 else {
        throw StoreError(RecordViolation(field, "expected users/{user}"))
      }
      users.append(String(name.dropFirst("users/".count)))
    }
    return users
  }

  func createContainer(
    _ request: Record.CreateContainerRequest, _ context: ServerContext
  ) async throws -> Record.CreateContainerResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let change = try change(
        request.container ?? .init(),
        Mask(nil, of: ["display_name", "environment", "administrators", "limits"]))
      let made = try await store.write {
        try $0.createContainer(request.containerId, change, caller: caller)
      }
      return .init(container: .init(made))
    }
  }

  func getContainer(
    _ request: Record.GetContainerRequest, _ context: ServerContext
  ) async throws -> Record.GetContainerResponse {
    try await answering(.record) {
      _ = try await caller(context)
      let name = try container(request.name, "name")
      return .init(container: .init(try await store.read { try $0.container(name) }))
    }
  }

  func listContainers(
    _ request: Record.ListContainersRequest, _ context: ServerContext
  ) async throws -> Record.ListContainersResponse {
    try await answering(.record) {
      _ = try await caller(context)
      let size = try pageSize(request.pageSize)
      return try await store.read { transaction in
        var arguments = KeysetWriter()
        arguments.text("containers")
        var after = ""
        if !request.pageToken.isEmpty {
          var keyset = try transaction.tokens.keyset(
            ofPageToken: request.pageToken, arguments: arguments)
          guard let name = keyset.text(), keyset.isAtEnd else {
            throw TokenAuthority.badPageToken
          }
          after = name
        }
        var found = try transaction.containers(after: after, limit: size + 1)
        var response = Record.ListContainersResponse()
        if found.count > size {
          found.removeLast()
          var keyset = KeysetWriter()
          keyset.text(found.last?.container ?? "")
          response.nextPageToken = transaction.tokens.pageToken(
            keyset: keyset, arguments: arguments)
        }
        response.containers = found.map { .init($0) }
        return response
      }
    }
  }

  func updateContainer(
    _ request: Record.UpdateContainerRequest, _ context: ServerContext
  ) async throws -> Record.UpdateContainerResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let given = request.container ?? .init()
      let name = try container(given.name, "container.name")
      let change = try change(
        given,
        Mask(
          request.updateMask, of: ["display_name", "environment", "administrators", "limits"]))
      let changed = try await store.write {
        try $0.updateContainer(name, etag: given.etag, change, caller: caller)
      }
      return .init(container: .init(changed))
    }
  }

  func deleteContainer(
    _ request: Record.DeleteContainerRequest, _ context: ServerContext
  ) async throws -> Record.DeleteContainerResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let name = try container(request.name, "name")
      try await store.write {
        try $0.deleteContainer(name, etag: request.etag, force: request.force, caller: caller)
      }
      return .init()
    }
  }

  // MARK: Schemas

  func getSchema(
    _ request: Record.GetSchemaRequest, _ context: ServerContext
  ) async throws -> Record.GetSchemaResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let name = try container(request.container, "container")
      return try await store.read { transaction in
        let container = try transaction.container(name)
        let environment: RecordEnvironment =
          switch request.environment {
          case .production: .production
          case .development: .development
          default: container.environment
          }
        var schema = try transaction.schema(of: container, environment)
        // Who has which role is for administrators.
        do throws(StoreError) {
          try transaction.checkAdministrator(caller, of: container)
        } catch {
          guard error.code == .permissionDenied else { throw error }
          for role in schema.roles.keys { schema.roles[role] = [] }
        }
        return .init(schema: .init(schema), schemaText: schema.text)
      }
    }
  }

  func updateSchema(
    _ request: Record.UpdateSchemaRequest, _ context: ServerContext
  ) async throws -> Record.UpdateSchemaResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let name = try container(request.container, "container")
      return try await store.write { transaction in
        let current = try transaction.schema(
          of: transaction.container(name), .development)
        let schema: RecordSchema
        switch request.source {
        case .schema(let given)?: schema = try given.stored(users)
        case .schemaText(let text)?:
          do throws(RecordViolation) {
            schema = try RecordSchema(text: text, current: current)
          } catch { throw StoreError(error) }
        case nil: throw StoreError(RecordViolation("source", "neither a schema nor its text"))
        }
        let changes = try transaction.updateSchema(
          name, schema, etag: request.etag, validateOnly: request.validateOnly, caller: caller)
        return .init(schema: .init(schema), changes: changes.map { .init($0) })
      }
    }
  }

  func deploySchema(
    _ request: Record.DeploySchemaRequest, _ context: ServerContext
  ) async throws -> Record.DeploySchemaResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let name = try container(request.container, "container")
      let changes = try await store.write {
        try $0.deploySchema(name, validateOnly: request.validateOnly, caller: caller)
      }
      return .init(changes: changes.map { .init($0) })
    }
  }

  func resetDevelopment(
    _ request: Record.ResetDevelopmentRequest, _ context: ServerContext
  ) async throws -> Record.ResetDevelopmentResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let name = try container(request.container, "container")
      try await store.write { try $0.resetDevelopment(name, caller: caller) }
      return .init()
    }
  }
}

extension Record.Container {
  init(_ container: RecordContainer) {
    self.init()
    name = container.name
    displayName = container.displayName
    environment = container.environment == .production ? .production : .development
    administrators = container.administrators.map { "users/\($0)" }
    limits = .init(
      maxOperationsPerRequest: Int32(RecordRules.maxOperations),
      maxRequestBytes: Int64(RecordRules.maxRequestBytes),
      maxRecordBytes: Int64(RecordRules.maxRecordBytes), maxDatabaseBytes: container.quota,
      maxCascadeReferences: Int32(RecordRules.maxReferences),
      maxPageSize: Int32(RecordRules.maxPageSize))
    createTime = Google.Timestamp(microseconds: container.createTime)
    updateTime = Google.Timestamp(microseconds: container.updateTime)
    etag = container.etag
  }
}

extension Record.Schema {
  init(_ schema: RecordSchema) {
    self.init()
    recordTypes = schema.types.sorted { $0.key < $1.key }.map { name, type in
      .init(
        recordType: name,
        fields: type.fields.sorted { $0.key < $1.key }.map { name, field in
          .init(
            field: name, type: Record.FieldType(rawValue: Int32(field.kind.rawValue)),
            list: field.isList, queryable: field.isQueryable, sortable: field.isSortable,
            searchable: field.isSearchable, inferred: field.isInferred)
        },
        grants: (type.grants ?? RecordSchema.RecordType.standardGrants)
          .sorted { $0.key < $1.key }.map { role, permissions in
            .init(
              role: role,
              permissions: [
                (RecordSchema.Permissions.create, Record.Permission.create), (.read, .read),
                (.write, .write),
              ].filter { permissions.contains($0.0) }.map(\.1))
          })
    }
    securityRoles = schema.roles.sorted { $0.key < $1.key }.map { role, users in
      .init(role: role, users: users.sorted().map { "users/\($0)" })
    }
    etag = schema.etag
  }

  func stored(
    _ users: ([String], String) throws(StoreError) -> [String]
  ) throws(StoreError) -> RecordSchema {
    var schema = RecordSchema()
    for role in securityRoles {
      schema.roles[role.role] = Set(try users(role.users, "schema.security_roles"))
    }
    for type in recordTypes {
      var stored = RecordSchema.RecordType()
      for field in type.fields {
        guard let kind = RecordSchema.FieldKind(rawValue: Int64(field.type.rawValue)) else {
          throw StoreError(
            RecordViolation("\(type.recordType).\(field.field)", "not a known field type"))
        }
        stored.fields[field.field] = RecordSchema.Field(
          kind, isList: field.list, queryable: field.queryable, sortable: field.sortable,
          searchable: field.searchable)
      }
      if !type.grants.isEmpty {
        stored.grants = [:]
        for grant in type.grants {
          var permissions: RecordSchema.Permissions = []
          for permission in grant.permissions {
            switch permission {
            case .create: permissions.insert(.create)
            case .read: permissions.insert(.read)
            case .write: permissions.insert(.write)
            default:
              throw StoreError(
                RecordViolation("\(type.recordType).grants", "not a known permission"))
            }
          }
          stored.grants?[grant.role, default: []].formUnion(permissions)
        }
        if stored.grants == RecordSchema.RecordType.standardGrants { stored.grants = nil }
      }
      guard schema.types.updateValue(stored, forKey: type.recordType) == nil else {
        throw StoreError(RecordViolation(type.recordType, "defined twice"))
      }
    }
    return schema
  }
}

extension Record.SchemaChange {
  init(_ change: SchemaChange) {
    self.init()
    kind =
      switch change.kind {
      case .typeAdded: .typeAdded
      case .typeRemoved: .typeRemoved
      case .fieldAdded: .fieldAdded
      case .fieldRemoved: .fieldRemoved
      case .fieldChanged: .fieldChanged
      case .indexChanged: .indexChanged
      case .grantChanged: .grantChanged
      case .roleChanged: .roleChanged
      }
    recordType = change.type
    field = change.field
    description = change.description
    destructive = change.isDestructive
  }
}
