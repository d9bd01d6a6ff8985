import VencejoStore

/// Files, streamed both ways: a few chunks are in memory at a time, whatever their size.
struct FileTransfer {
  let store: Store

  /// What a message of an upload brings.
  enum Part {
    case header(NewUpload, offset: Int64)
    case chunk([UInt8])
  }

  /// Takes a file: the header first, which may say where to go on.
  ///
  /// - Throws: `BAD_UPLOAD`, `BAD_OFFSET`, `BAD_CHUNK`, `UPLOAD_INCOMPLETE`, and what
  ///   ``WriteTransaction/beginUpload(_:by:)`` and ``Store/finish(_:)`` throw.
  func receive<Requests: AsyncSequence & Sendable>(
    _ requests: Requests, by user: Int64, _ part: (Requests.Element) throws -> Part?
  ) async throws -> Attachment {
    var upload: Upload?
    var offset: Int64 = 0
    for try await request in requests {
      switch try part(request) {
      case .header(let new, let start)?:
        guard upload == nil else {
          throw StoreError.invalid("header", "BAD_UPLOAD", "the header comes once, and first")
        }
        let begun = try await store.write { try $0.beginUpload(new, by: user) }
        if let attachment = begun.attachment { return attachment }
        let kept = try await store.files.size(ofUpload: begun.key)
        guard start >= 0, start <= kept else {
          throw StoreError(
            .outOfRange, "BAD_OFFSET", "the server has fewer bytes than that",
            metadata: ["committed_bytes": String(kept)])
        }
        upload = begun
        offset = start
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
    return try await store.finish(upload)
  }

  /// Hands a part of a file over; `limit` 0 is all there is.
  ///
  /// - Throws: `BAD_OFFSET`, `ATTACHMENT_LOST`.
  func send(
    _ sha256: [UInt8], size: Int64, offset: Int64, limit: Int64,
    _ chunk: ([UInt8]) async throws -> Void
  ) async throws {
    var offset = offset
    let end = offset + (limit == 0 ? size - offset : min(size - offset, limit))
    while offset < end {
      let count = Int(min(Int64(AttachmentLimits.recommendedChunkBytes), end - offset))
      let bytes = try await store.files.read(sha256, at: offset, count: count)
      guard !bytes.isEmpty else {
        throw StoreError(.dataLoss, "ATTACHMENT_LOST", "the bytes of the file are gone")
      }
      try await chunk(bytes)
      offset += Int64(bytes.count)
    }
  }

  /// - Throws: `BAD_OFFSET`.
  static func check(offset: Int64, limit: Int64, size: Int64) throws(StoreError) {
    guard offset >= 0, offset <= size, limit >= 0 else {
      throw StoreError(
        .outOfRange, "BAD_OFFSET", "the file has \(size) bytes",
        metadata: ["size_bytes": String(size)])
    }
  }
}
