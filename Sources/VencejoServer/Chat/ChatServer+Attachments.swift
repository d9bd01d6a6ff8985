import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Files, streamed both ways: a few chunks are in memory at a time, whatever their size.
extension ChatServer {
  func uploadAttachment(
    _ requests: RequestStream<Chat.UploadAttachmentRequest>, _ context: ServerContext
  ) async throws -> Chat.UploadAttachmentResponse {
    try await respond(context) { caller in
      var upload: Upload?
      var offset: Int64 = 0
      for try await request in requests {
        switch request.payload {
        case .header(let header)?:
          guard upload == nil else {
            throw StoreError.invalid("header", "BAD_UPLOAD", "the header comes once, and first")
          }
          let begun = try await begin(header, caller)
          if let attachment = begun.attachment {
            return Chat.UploadAttachmentResponse(attachment: Chat.Attachment(attachment))
          }
          let kept = try await store.files.size(ofUpload: begun.key)
          guard header.offset >= 0, header.offset <= kept else {
            throw StoreError(
              .outOfRange, "BAD_OFFSET", "the server has fewer bytes than that",
              metadata: ["committed_bytes": String(kept)])
          }
          upload = begun
          offset = header.offset
        case .chunk(let bytes)?:
          guard let upload else {
            throw StoreError.invalid("header", "BAD_UPLOAD", "the header comes first")
          }
          guard bytes.count <= AttachmentLimits.chunkBytes,
            Int64(bytes.count) <= upload.size - offset
          else {
            throw StoreError.invalid(
              "chunk", "BAD_CHUNK",
              "a chunk has at most \(AttachmentLimits.chunkBytes) bytes, all of them at most size_bytes"
            )
          }
          try await store.files.write(bytes, toUpload: upload.key, at: offset)
          offset += Int64(bytes.count)
        case nil: break
        }
      }
      guard let upload else {
        throw StoreError.invalid("header", "BAD_UPLOAD", "the header is missing")
      }
      guard offset == upload.size else {
        throw StoreError(
          .failedPrecondition, "UPLOAD_INCOMPLETE", "bytes are missing: resume the upload",
          metadata: ["committed_bytes": String(offset)])
      }
      let attachment = try await store.finish(upload)
      return Chat.UploadAttachmentResponse(attachment: Chat.Attachment(attachment))
    }
  }

  private func begin(_ header: Chat.AttachmentUploadHeader, _ caller: Principal) async throws
    -> Upload
  {
    guard let id = UUID(parsing: header.uploadId) else {
      throw StoreError.invalid("header.upload_id", "BAD_UPLOAD", "upload_id must be a UUID")
    }
    let new = NewUpload(
      id: id, sha256: header.sha256, size: header.sizeBytes, fileName: header.fileName,
      contentType: header.contentType)
    return try await store.write { try $0.beginUpload(new, by: caller.user) }
  }

  func getAttachmentUpload(
    _ request: Chat.GetAttachmentUploadRequest, _ context: ServerContext
  ) async throws -> Chat.GetAttachmentUploadResponse {
    try await respond(context) { caller in
      guard let id = UUID(parsing: request.uploadId) else {
        throw StoreError.invalid("upload_id", "BAD_UPLOAD", "upload_id must be a UUID")
      }
      let upload = try await store.read { try $0.upload(id, by: caller.user) }
      var response = Chat.GetAttachmentUploadResponse()
      response.complete = upload.attachment != nil
      response.attachment = upload.attachment.map { Chat.Attachment($0) }
      response.committedBytes =
        response.complete ? upload.size : try await store.files.size(ofUpload: upload.key)
      response.expireTime = Google.Timestamp(microseconds: upload.expireTime)
      return response
    }
  }

  func getAttachment(_ request: Chat.GetAttachmentRequest, _ context: ServerContext) async throws
    -> Chat.GetAttachmentResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.single(request.name, "attachments", field: "name")
      let attachment = try await store.read { try $0.attachment(id, for: caller.user) }
      return Chat.GetAttachmentResponse(attachment: Chat.Attachment(attachment))
    }
  }

  func downloadAttachment(
    _ request: Chat.DownloadAttachmentRequest,
    _ out: ResponseWriter<Chat.DownloadAttachmentResponse>, _ context: ServerContext
  ) async throws {
    try await respond(context) { caller in
      let id = try ResourceName.single(request.name, "attachments", field: "name")
      let attachment = try await store.read { try $0.attachment(id, for: caller.user) }
      guard request.offset >= 0, request.offset <= attachment.size, request.limit >= 0 else {
        throw StoreError(
          .outOfRange, "BAD_OFFSET", "the attachment has \(attachment.size) bytes",
          metadata: ["size_bytes": String(attachment.size)])
      }
      var frame = Chat.DownloadAttachmentResponse()
      frame.payload = .attachment(Chat.Attachment(attachment))
      try await out.send(frame)
      let rest = attachment.size - request.offset
      let end = request.offset + (request.limit == 0 ? rest : min(rest, request.limit))
      var offset = request.offset
      while offset < end {
        let count = Int(min(Int64(AttachmentLimits.recommendedChunkBytes), end - offset))
        let bytes = try await store.files.read(attachment.sha256, at: offset, count: count)
        guard !bytes.isEmpty else {
          throw StoreError(.dataLoss, "ATTACHMENT_LOST", "the bytes of the attachment are gone")
        }
        frame.payload = .chunk(bytes)
        try await out.send(frame)
        offset += Int64(bytes.count)
      }
    }
  }
}

extension Chat.Attachment {
  init(_ attachment: VencejoStore.Attachment) {
    self.init()
    name = "attachments/\(attachment.id)"
    fileName = attachment.fileName
    contentType = attachment.contentType
    sizeBytes = attachment.size
    sha256 = attachment.sha256
    uploader = "users/\(attachment.uploader)"
    createTime = Google.Timestamp(microseconds: attachment.createTime)
    expireTime = attachment.expireTime.map { Google.Timestamp(microseconds: $0) }
  }
}
