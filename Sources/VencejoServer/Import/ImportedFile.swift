import Glibc
import VencejoCrypto
import VencejoStore

/// A file on its way from an import into the store.
struct ImportedFile {
  let sha256: [UInt8]
  let size: Int64
  private let path: String

  private static let piece = 1 << 20

  /// Reads a file once, for what it is to be known by.
  init(path: String) throws {
    self.path = path
    let hash = SHA256.Stream()
    var size: Int64 = 0
    try Self.pieces(of: path) { piece in
      hash.update(piece[...])
      size += Int64(piece.count)
    }
    sha256 = hash.finish()
    self.size = size
  }

  /// The attachment it becomes, or became when it was brought before.
  func upload(_ id: UUID, name: String, to store: Store, by user: Int64) async throws -> UUID {
    let new = NewUpload(
      id: id, sha256: sha256, size: size, fileName: name, contentType: Self.type(of: name))
    let upload = try await store.write { try $0.beginUpload(new, by: user) }
    if let known = upload.attachment { return known.id }
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      throw WhatsAppSource.unreadable(path, String(cString: strerror(errno)))
    }
    defer { close(file) }
    var offset: Int64 = 0
    while offset < size {
      var bytes = [UInt8](repeating: 0, count: Int(min(Int64(Self.piece), size - offset)))
      let count = read(file, &bytes, bytes.count)
      guard count > 0 else { throw WhatsAppSource.unreadable(path, "it became shorter") }
      try await store.files.write(
        Array(bytes.prefix(count)), toUpload: upload.key, at: offset)
      offset += Int64(count)
    }
    return try await store.finish(upload).id
  }

  private static func pieces(of path: String, _ take: ([UInt8]) -> Void) throws {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      throw WhatsAppSource.unreadable(path, String(cString: strerror(errno)))
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: piece)
    while true {
      let count = read(file, &bytes, bytes.count)
      guard count >= 0 else {
        throw WhatsAppSource.unreadable(path, String(cString: strerror(errno)))
      }
      guard count > 0 else { return }
      take(Array(bytes.prefix(count)))
    }
  }

  /// By the end of the name (RFC 6838's registry); of others nothing is said.
  static func type(of name: String) -> String {
    let end = name.split(separator: ".").last.map { $0.lowercased() } ?? ""
    return types[end] ?? "application/octet-stream"
  }

  private static let types = [
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif",
    "webp": "image/webp", "heic": "image/heic", "mp4": "video/mp4", "3gp": "video/3gpp",
    "mov": "video/quicktime", "opus": "audio/ogg", "ogg": "audio/ogg", "m4a": "audio/mp4",
    "mp3": "audio/mpeg", "aac": "audio/aac", "amr": "audio/amr", "pdf": "application/pdf",
    "vcf": "text/vcard", "txt": "text/plain", "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "zip": "application/zip",
  ]
}
