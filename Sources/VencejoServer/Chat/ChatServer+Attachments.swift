import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Files of messages.
extension ChatServer {
  func uploadAttachment(
    _ requests: RequestStream<Chat.UploadAttachmentRequest>, _ context: ServerContext
  ) async throws -> Chat.UploadAttachmentResponse {
    try await respond(context) { caller in
      let attachment = try await FileTransfer(store: store).receive(requests, by: caller.user) {
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
      return Chat.UploadAttachmentResponse(attachment: Chat.Attachment(attachment))
    }
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
      try FileTransfer.check(
        offset: request.offset, limit: request.limit, size: attachment.size)
      var frame = Chat.DownloadAttachmentResponse()
      frame.payload = .attachment(Chat.Attachment(attachment))
      try await out.send(frame)
      try await FileTransfer(store: store).send(
        attachment.sha256, size: attachment.size, offset: request.offset, limit: request.limit
      ) {
        frame.payload = .chunk($0)
        try await out.send(frame)
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
