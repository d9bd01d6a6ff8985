import CCurl
import Glibc
import Synchronization

/// Posts to servers of strangers: only to machines that a policy lets in, looked at when the
/// connection is made and whatever the name resolved to before; within a time; without
/// redirects, proxies or credentials; and never more of the answer than a few kilobytes.
///
/// One thread of its own runs all transfers (libcurl's multi interface).
public final class HTTPClient: Sendable {
  private struct State {
    var waiting: [Transfer] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let engine: Engine

  /// Nil when the system has no thread for it. At most `limit` transfers run at once; more wait.
  public init?(limit: Int = 32) {
    // Once in a process, before any other thread of ours can call curl.
    guard Self.isReady, let multi = curl_multi_init() else { return nil }
    _ = curl_set_multi_number(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, limit)
    _ = curl_set_multi_number(multi, CURLMOPT_MAXCONNECTS, limit)
    engine = Engine(multi)
    guard engine.start(self) else {
      curl_multi_cleanup(multi)
      return nil
    }
  }

  private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Sends a request and answers how it went.
  public func post(_ post: HTTPPost) async -> HTTPOutcome {
    await withUnsafeContinuation { continuation in
      let transfer = Transfer(post, continuation)
      // Woken under the lock: the thread that sees the end lets go of what would be woken.
      let isAccepted = state.withLock { state in
        guard !state.isClosed else { return false }
        state.waiting.append(transfer)
        engine.wake()
        return true
      }
      if !isAccepted { transfer.end(.failed("the client is closed")) }
    }
  }

  /// Ends what runs, as failed, and the thread. Blocks.
  public func close() {
    let wasOpen = state.withLock { state in
      guard !state.isClosed else { return false }
      state.isClosed = true
      engine.wake()
      return true
    }
    if wasOpen { engine.join() }
  }

  /// What is to begin, and whether the end has come.
  fileprivate func take() -> (transfers: [Transfer], isClosed: Bool) {
    state.withLock { state in
      defer { state.waiting = [] }
      return (state.waiting, state.isClosed)
    }
  }
}

/// The thread.
///
/// `@unchecked Sendable`: the multi handle belongs to the thread but for curl_multi_wakeup(3),
/// which any may call; `thread` is set before anybody else has the engine.
private final class Engine: @unchecked Sendable {
  private let multi: UnsafeMutableRawPointer
  private var thread = pthread_t()
  private var running: [UnsafeMutableRawPointer: Transfer] = [:]

  init(_ multi: UnsafeMutableRawPointer) { self.multi = multi }

  private final class Start {
    let engine: Engine
    weak var client: HTTPClient?
    init(_ engine: Engine, _ client: HTTPClient) {
      self.engine = engine
      self.client = client
    }
  }

  func start(_ client: HTTPClient) -> Bool {
    let start = Unmanaged.passRetained(Start(self, client))
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        start.engine.run { start.client?.take() ?? ([], true) }
        return nil
      }, start.toOpaque())
    if code != 0 { start.release() }
    return code == 0
  }

  func wake() { curl_multi_wakeup(multi) }

  func join() { pthread_join(thread, nil) }

  private func run(_ take: () -> (transfers: [Transfer], isClosed: Bool)) {
    while true {
      let (new, isClosed) = take()
      for transfer in new { begin(transfer) }
      if isClosed { break }
      var count: CInt = 0
      curl_multi_perform(multi, &count)
      var result = CURLE_OK
      while let easy = curl_next_done(multi, &result) { finish(easy, result) }
      curl_multi_poll(multi, nil, 0, running.isEmpty ? 60_000 : 1000, nil)
    }
    for (easy, transfer) in running {
      curl_multi_remove_handle(multi, easy)
      curl_easy_cleanup(easy)
      transfer.end(.failed("the client is closed"))
    }
    curl_multi_cleanup(multi)
  }

  private func begin(_ transfer: Transfer) {
    guard let easy = transfer.makeHandle() else {
      transfer.end(.failed("the request cannot be made"))
      return
    }
    running[easy] = transfer
    curl_multi_add_handle(multi, easy)
  }

  private func finish(_ easy: UnsafeMutableRawPointer, _ result: CURLcode) {
    curl_multi_remove_handle(multi, easy)
    let status = curl_response_code(easy)
    curl_easy_cleanup(easy)
    guard let transfer = running.removeValue(forKey: easy) else { return }
    transfer.end(result, status)
  }
}

/// One request on its way.
///
/// `@unchecked Sendable`: after it is made only the engine's thread touches it.
private final class Transfer: @unchecked Sendable {
  /// Bytes of an answer that are read; then it is cut off, its status known.
  private static let answerLimit = 16 << 10

  private let post: HTTPPost
  private let continuation: UnsafeContinuation<HTTPOutcome, Never>
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var body: UnsafeMutableBufferPointer<UInt8>
  private var received = 0
  private var wasRefused = false

  init(_ post: HTTPPost, _ continuation: UnsafeContinuation<HTTPOutcome, Never>) {
    self.post = post
    self.continuation = continuation
    body = .allocate(capacity: max(1, post.body.count))
    _ = body.initialize(from: post.body)
  }

  deinit {
    curl_slist_free_all(headers)
    body.deallocate()
  }

  func end(_ outcome: HTTPOutcome) { continuation.resume(returning: outcome) }

  func end(_ result: CURLcode, _ status: Int) {
    // A status is an answer, also where what came behind it was cut off.
    if status > 0, result == CURLE_OK || result == CURLE_WRITE_ERROR {
      end(.status(status))
    } else if wasRefused {
      end(.forbidden)
    } else {
      end(.failed(String(cString: curl_easy_strerror(result))))
    }
  }

  func makeHandle() -> UnsafeMutableRawPointer? {
    guard let easy = curl_easy_init() else { return nil }
    for (name, value) in post.headers {
      let line = "\(name): \(value)"
      guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) else { continue }
      headers = curl_slist_append(headers, line)
    }
    // Asking first whether the body is welcome costs a round trip, or a second without answer.
    headers = curl_slist_append(headers, "Expect:")
    let own = Unmanaged.passUnretained(self).toOpaque()
    let (seconds, attoseconds) = post.timeout.components
    let milliseconds = max(1, seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    let results = [
      curl_set_text(easy, CURLOPT_URL, post.address.url),
      curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
      curl_set_number(easy, CURLOPT_FOLLOWLOCATION, 0),
      // Whatever the environment says.
      curl_set_text(easy, CURLOPT_PROXY, ""),
      curl_set_number(easy, CURLOPT_NOSIGNAL, 1),
      curl_set_number(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
      curl_set_number(easy, CURLOPT_TIMEOUT_MS, Int(milliseconds)),
      curl_set_number(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(min(5000, milliseconds))),
      // The policy may change; a connection that it would not let in now does not live long.
      curl_set_number(easy, CURLOPT_MAXAGE_CONN, 30),
      curl_set_number(easy, CURLOPT_POST, 1),
      curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(post.body.count)),
      curl_set_pointer(easy, CURLOPT_POSTFIELDS, body.baseAddress),
      curl_set_list(easy, CURLOPT_HTTPHEADER, headers),
      curl_set_pointer(easy, CURLOPT_WRITEDATA, own),
      curl_set_write(easy, Self.write),
      curl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, own),
      curl_set_open_socket(easy, Self.openSocket),
    ]
    guard results.allSatisfy({ $0 == CURLE_OK }) else {
      curl_easy_cleanup(easy)
      return nil
    }
    return easy
  }

  private static let write:
    @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
      _, size, count, own in
      guard let own else { return 0 }
      let transfer = Unmanaged<Transfer>.fromOpaque(own).takeUnretainedValue()
      transfer.received += size * count
      return transfer.received > Transfer.answerLimit ? 0 : size * count
    }

  /// Called with each address that is about to be connected to.
  private static let openSocket:
    @convention(c) (
      UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
    ) -> curl_socket_t = { own, _, address in
      guard let own, let address else { return -1 }
      let transfer = Unmanaged<Transfer>.fromOpaque(own).takeUnretainedValue()
      let length = min(Int(address.pointee.addrlen), MemoryLayout<sockaddr_storage>.size)
      // The structure ends in an address of any family, longer than its declaration says.
      let bytes = UnsafeRawBufferPointer(
        start: UnsafeRawPointer(address) + transfer.addressOffset, count: length)
      guard let plain = NetworkAddress(family: address.pointee.family, bytes),
        transfer.post.policy.permits(plain)
      else {
        transfer.wasRefused = true
        return -1
      }
      return socket(
        address.pointee.family, address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue),
        address.pointee.protocol)
    }

  private var addressOffset: Int { MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 16 }
}
