import VencejoAPI
import VencejoStore

/// Tells the records of a zone or a database, with their files before them.
struct RecordExporter {
  let store: Store
  let database: DatabaseID
  let zone: ZoneID?
  let caller: RecordCaller
  let includesAssets: Bool

  /// - Throws: What ``ReadTransaction/exportPage(of:in:pageToken:)`` throws, and `send`.
  func run(
    pageToken: String, _ send: (Record.ExportRecordsResponse) async throws -> Void
  ) async throws {
    var token = pageToken
    var count: Int64 = 0
    // A file that many records hold is told once; of many files, perhaps again.
    var told: Set<String> = []
    while true {
      let page = try await store.readRecords(database, caller: caller) { [token, zone] in
        try $0.exportPage(of: zone, in: $1, pageToken: token)
      }
      if includesAssets {
        if told.count > 100_000 { told = [] }
        for file in page.files where told.insert("\(file.id)").inserted {
          try await tell(file, send)
        }
      }
      for record in page.records {
        try await send(.init(payload: .record(.init(record, keeping: nil))))
      }
      count += Int64(page.records.count)
      token = page.nextPageToken ?? ""
      try await send(
        .init(
          payload: .progress(
            .init(exportedCount: count, pageToken: token, done: page.nextPageToken == nil))))
      guard page.nextPageToken != nil else { return }
    }
  }

  private func tell(
    _ file: RecordAsset, _ send: (Record.ExportRecordsResponse) async throws -> Void
  ) async throws {
    var part = Record.AssetPart(asset: .init(file))
    try await FileTransfer(store: store).send(file.sha256, size: file.size, offset: 0, limit: 0) {
      part.data = $0
      try await send(.init(payload: .assetPart(part)))
      part = Record.AssetPart()
    }
  }
}
