import VencejoAPI
import VencejoRPC
import VencejoStore

// Whole zones and databases, out and in.
extension RecordServer {
  func exportRecords(
    _ request: Record.ExportRecordsRequest,
    _ out: ResponseWriter<Record.ExportRecordsResponse>, _ context: ServerContext
  ) async throws {
    try await answering(.record) {
      let caller = try await caller(context)
      let (database, zone) = try place(request.parent, caller)
      try await RecordExporter(
        store: store, database: database, zone: zone, caller: caller,
        includesAssets: request.includeAssets
      ).run(pageToken: request.pageToken) { try await out.send($0) }
    }
  }

  func importRecords(
    _ requests: RequestStream<Record.ImportRecordsRequest>, _ context: ServerContext
  ) async throws -> Record.ImportRecordsResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      var importer: RecordImporter?
      for try await request in requests {
        switch request.payload {
        case .header(let header)?:
          guard importer == nil else { throw Self.badImport("the header comes once, and first") }
          importer = try RecordImporter(store, header, by: caller)
        case .record(let record)?:
          guard importer != nil else { throw Self.badImport("the header comes first") }
          try await importer?.take(record)
        case .assetPart(let part)?:
          guard importer != nil else { throw Self.badImport("the header comes first") }
          try await importer?.take(part)
        case nil: break
        }
      }
      guard let outcome = try await importer?.finish() else {
        throw Self.badImport("the header is missing")
      }
      return .init(
        importedCount: outcome.imported, unchangedCount: outcome.unchanged,
        failedCount: outcome.failed,
        failures: outcome.failures.map {
          .init(record: $0.name, status: .init($0.failure, keeping: []))
        })
    }
  }

  private static func badImport(_ problem: String) -> StoreError {
    StoreError.invalid("header", "BAD_IMPORT", problem)
  }
}
