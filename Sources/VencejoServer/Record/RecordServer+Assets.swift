import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Files in fields, and what a database holds.
extension RecordServer {
  func uploadAsset(
    _ requests: RequestStream<Record.UploadAssetRequest>, _ context: ServerContext
  ) async throws -> Record.UploadAssetResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let file = try await FileTransfer(store: store).receive(requests, by: caller.key) {
        switch $0.payload {
        case .header(let header)?:
          guard let id = UUID(parsing: header.uploadId) else {
            throw StoreError.invalid("header.upload_id", "BAD_UPLOAD", "upload_id must be a UUID")
          }
          return .header(
            NewUpload(
              id: id, sha256: header.sha256, size: header.sizeBytes, fileName: header.fileName,
              contentType: header.contentType), offset: header.offset)
        case .chunk(let bytes)?: return .chunk(bytes)
        case nil: return nil
        }
      }
      return .init(
        asset: .init(file), expireTime: file.expireTime.map { .init(microseconds: $0) })
    }
  }

  func getAssetUpload(
    _ request: Record.GetAssetUploadRequest, _ context: ServerContext
  ) async throws -> Record.GetAssetUploadResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      guard let id = UUID(parsing: request.uploadId) else {
        throw StoreError.invalid("upload_id", "BAD_UPLOAD", "upload_id must be a UUID")
      }
      let upload = try await store.read { try $0.upload(id, by: caller.key) }
      var response = Record.GetAssetUploadResponse()
      response.complete = upload.attachment != nil
      response.asset = upload.attachment.map { .init($0) }
      response.committedBytes =
        response.complete ? upload.size : try await store.files.size(ofUpload: upload.key)
      response.expireTime = Google.Timestamp(microseconds: upload.expireTime)
      return response
    }
  }

  func downloadAsset(
    _ request: Record.DownloadAssetRequest,
    _ out: ResponseWriter<Record.DownloadAssetResponse>, _ context: ServerContext
  ) async throws {
    try await answering(.record) {
      let caller = try await caller(context)
      let id = try checking("record") { () throws(RecordViolation) in
        try RecordID(parsing: request.record, caller: caller.user)
      }
      let asset = try await store.readRecords(id.zone.database, caller: caller) {
        try $0.asset(of: id, field: request.field, index: Int(request.listIndex), in: $1)
      }
      try FileTransfer.check(offset: request.offset, limit: request.limit, size: asset.size)
      try await out.send(.init(payload: .asset(.init(asset))))
      try await FileTransfer(store: store).send(
        asset.sha256, size: asset.size, offset: request.offset, limit: request.limit
      ) { try await out.send(.init(payload: .chunk($0))) }
    }
  }

  func getUsage(
    _ request: Record.GetUsageRequest, _ context: ServerContext
  ) async throws -> Record.GetUsageResponse {
    try await answering(.record) {
      let caller = try await caller(context)
      let usage: DatabaseUsage
      if request.name.utf8.count(where: { $0 == UInt8(ascii: "/") }) == 1 {
        let name = try container(request.name, "name")
        usage = try await store.read {
          let container = try $0.container(name)
          try $0.checkAdministrator(caller, of: container)
          return try $0.usage(of: container)
        }
      } else {
        let id = try database(request.name, caller)
        usage = try await store.readRecords(id, caller: caller) {
          guard $1.isWhole else { throw StoreError.notYours(id) }
          return try $0.usage(of: $1)
        }
      }
      return .init(
        recordCount: usage.records, recordBytes: usage.recordBytes, assetCount: usage.assets,
        assetBytes: usage.assetBytes, quotaBytes: usage.quota)
    }
  }
}

extension Record.Asset {
  init(_ asset: RecordAsset) {
    self.init(
      assetId: "\(asset.id)", sha256: asset.sha256, sizeBytes: asset.size,
      contentType: asset.contentType, fileName: asset.fileName)
  }

  init(_ file: VencejoStore.Attachment) {
    self.init(
      assetId: "\(file.id)", sha256: file.sha256, sizeBytes: file.size,
      contentType: file.contentType, fileName: file.fileName)
  }
}
