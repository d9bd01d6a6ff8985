import VencejoCompression
import VencejoHTTP2

/// A connection as the server sees it: makes calls of its streams and bounds how many
/// handlers run for it.
///
/// `@unchecked Sendable`: confined to the connection's loop.
final class ServerConnection: ConnectionHandler, @unchecked Sendable {
  let http2: HTTP2Connection
  let host: ServerHost
  /// Handlers that a peer cancelled may still be winding up: they count until they end, or
  /// a peer that opens and resets streams would start any number (CVE-2023-44487).
  private var runningHandlers = 0
  /// Bytes of whole responses whose streams are open: a peer that opens no window could ask
  /// for any number of large ones.
  private var pendingResponseBytes = 0
  /// A client calls itself the same in every call: one string serves all of them. Set before
  /// the handler of the first call runs, and never again: handlers read it.
  private(set) var usualAgent: String?
  /// Nor does what it can decompress change from call to call.
  private var lastAccepted: (text: [UInt8], value: [Compression]) = ([], [])

  init(_ http2: HTTP2Connection, host: ServerHost) {
    self.http2 = http2
    self.host = host
    http2.handler = self
    if let server = host.channelz { http2.show(below: server) }
    // A cycle until the connection closes.
    http2.acceptStream = { [self] stream in
      let call = ServerCall(connection: self)
      call.stream = stream
      return call
    }
  }

  /// Whether the client calls itself as in its first call.
  func isUsualAgent(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let usualAgent else {
      usualAgent = String(decoding: bytes, as: UTF8.self)
      return true
    }
    return usualAgent.utf8.withContiguousStorageIfAvailable { known in
      known.count == bytes.count && bytes.elementsEqual(known)
    } ?? false
  }

  func accepted(_ bytes: UnsafeRawBufferPointer) -> [Compression] {
    if !bytes.equals(lastAccepted.text) {
      lastAccepted.text = Array(bytes)
      lastAccepted.value = bytes.split(separator: UInt8(ascii: ",")).compactMap { name in
        Compression(rawValue: String(decoding: name.filter { $0 != 0x20 }, as: UTF8.self))
      }
    }
    return lastAccepted.value
  }

  func beginHandler() -> Bool {
    guard runningHandlers < host.handlerLimit else { return false }
    runningHandlers += 1
    return true
  }

  func endHandler() { runningHandlers -= 1 }

  func beginResponse(_ bytes: Int) -> Bool {
    guard pendingResponseBytes + bytes <= host.pendingResponseLimit else { return false }
    pendingResponseBytes += bytes
    return true
  }

  func endResponse(_ bytes: Int) { pendingResponseBytes -= bytes }

  func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?) {
    connection.acceptStream = nil
    connection.handler = nil
    for observer in host.observers { observer.connectionEnded(connection.peerAddress, error) }
    host.remove(self)
  }
}
