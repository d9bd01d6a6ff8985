import Glibc
import VencejoCompression
import VencejoStore

/// What WhatsApp's export is made of, in whichever form it came: the text alone, a folder with the
/// text and its files, or the ZIP archive of those that phones send.
public final class WhatsAppSource {
  public let export: WhatsAppExport
  let text: [UInt8]
  private enum Place {
    case file(String)
    case entry(ZipArchive.Entry)
  }
  private var places: [String: Place] = [:]
  private let archive: ZipArchive?

  /// Bytes a text may have.
  static let textLimit: Int64 = 64 << 20

  /// Opens a file or folder.
  ///
  /// - Throws: ``StoreError`` with `FILE_UNREADABLE`, and `BAD_IMPORT` where no text of the kind is.
  public init(path: String) throws {
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw Self.unreadable(path, String(cString: strerror(errno)))
    }
    var texts: [(name: String, bytes: () throws -> [UInt8])] = []
    if status.st_mode & S_IFMT == S_IFDIR {
      archive = nil
      for name in try Self.names(in: path) {
        let file = "\(path)/\(name)"
        places[name] = .file(file)
        if Self.isText(name) { texts.append((name, { try Self.bytes(of: file) })) }
      }
    } else if ZipArchive.isArchive(path: path) {
      let archive: ZipArchive
      do {
        archive = try ZipArchive(path: path)
      } catch { throw Self.unreadable(path, "the archive is damaged, or one that is not read") }
      self.archive = archive
      for entry in archive.entries where !entry.name.hasSuffix("/") {
        // What folders they lie in is the phone's affair.
        guard let name = entry.name.split(separator: "/").last.map(String.init) else { continue }
        places[name] = .entry(entry)
        if Self.isText(name) {
          texts.append((name, { try Self.bytes(of: entry, in: archive) }))
        }
      }
    } else {
      archive = nil
      texts.append((path, { try Self.bytes(of: path) }))
    }
    // The text of a chat among those that people sent each other: as iOS calls it, or else the one
    // with most messages.
    if let chat = texts.first(where: { $0.name == "_chat.txt" }) { texts = [chat] }
    var best: (export: WhatsAppExport, bytes: [UInt8])?
    for text in texts {
      let bytes = try text.bytes()
      let export = WhatsAppExport(String(decoding: bytes, as: UTF8.self))
      if export.entries.count > best?.export.entries.count ?? 0 { best = (export, bytes) }
    }
    guard let best else {
      throw StoreError.invalid(
        "chunk", "BAD_IMPORT", "\(path) holds no messages that are understood")
    }
    (export, text) = (best.export, best.bytes)
  }

  /// Whether a file that a message names is here.
  public func has(_ name: String) -> Bool { places[name] != nil }

  /// The path of a file; what is packed is unpacked to `temporary` first.
  func path(of name: String, unpackedTo temporary: String) throws -> String? {
    switch places[name] {
    case .file(let path)?: return path
    case .entry(let entry)?:
      guard let archive else { return nil }
      let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
      guard file >= 0 else { throw Self.unreadable(temporary, String(cString: strerror(errno))) }
      defer { close(file) }
      do {
        try archive.read(entry) { piece in
          guard write(file, piece, piece.count) == piece.count else {
            throw StoreError(.resourceExhausted, "DISK_FULL", "cannot write \(temporary)")
          }
        }
      } catch let error as CompressionError {
        throw Self.unreadable(entry.name, "\(error)")
      }
      return temporary
    case nil: return nil
    }
  }

  // MARK: Files

  private static func isText(_ name: String) -> Bool { name.lowercased().hasSuffix(".txt") }

  private static func names(in folder: String) throws -> [String] {
    guard let stream = opendir(folder) else {
      throw unreadable(folder, String(cString: strerror(errno)))
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let isFile = entry.pointee.d_type == UInt8(DT_REG) || entry.pointee.d_type == UInt8(DT_LNK)
      guard isFile else { continue }
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names.sorted()
  }

  private static func bytes(of path: String) throws -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw unreadable(path, String(cString: strerror(errno))) }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = read(file, &chunk, chunk.count)
      guard count >= 0 else { throw unreadable(path, String(cString: strerror(errno))) }
      guard count > 0 else { return bytes }
      bytes += chunk.prefix(count)
      guard bytes.count <= textLimit else { throw unreadable(path, "a text has at most 64 MiB") }
    }
  }

  private static func bytes(of entry: ZipArchive.Entry, in archive: ZipArchive) throws -> [UInt8] {
    guard entry.size <= textLimit else { throw unreadable(entry.name, "a text has at most 64 MiB") }
    var bytes: [UInt8] = []
    do {
      try archive.read(entry) { bytes += $0 }
    } catch { throw unreadable(entry.name, "\(error)") }
    return bytes
  }

  static func unreadable(_ path: String, _ why: String) -> StoreError {
    StoreError(.notFound, "FILE_UNREADABLE", "cannot read \(path): \(why)")
  }
}
