import Glibc

/// A thread of our own, for work that blocks.
final class WorkerThread: Sendable {
  private let handle: pthread_t

  /// Starts `body` on a new thread; nil when the system refuses one.
  init?(_ name: String, _ body: @escaping @Sendable () -> Void) {
    final class Start {
      let name: String
      let body: @Sendable () -> Void
      init(_ name: String, _ body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
      }
    }
    let start = Unmanaged.passRetained(Start(name, body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        // Glibc's pthread_setname_np is hidden from Swift; the kernel's own door is not. It keeps
        // 15 letters.
        let name = Glibc.open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        if name >= 0 {
          _ = Glibc.write(name, start.name, min(15, start.name.utf8.count))
          Glibc.close(name)
        }
        start.body()
        return nil
      }, start.toOpaque())
    guard code == 0 else {
      start.release()
      return nil
    }
    handle = thread
  }

  /// Waits for the thread's end; once.
  func join() { pthread_join(handle, nil) }
}

/// A bounded queue between any threads and worker threads that wait for its elements.
///
/// `@unchecked Sendable`: `elements` and `isClosed` are touched only under `mutex`.
final class WorkQueue<Element: Sendable>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let capacity: Int
  private var elements: [Element] = []
  private var isClosed = false

  enum Admission { case accepted, full, closed }

  init(capacity: Int) {
    self.capacity = capacity
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Adds an element, unless the queue is full or closed.
  func push(_ element: Element) -> Admission {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    guard !isClosed else { return .closed }
    guard elements.count < capacity else { return .full }
    elements.append(element)
    pthread_cond_signal(condition)
    return .accepted
  }

  /// Waits for elements and takes up to `limit` of them in order; nil when the queue is closed
  /// and empty.
  func pop(_ limit: Int) -> [Element]? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while elements.isEmpty {
      if isClosed { return nil }
      pthread_cond_wait(condition, mutex)
    }
    if elements.count <= limit {
      let taken = elements
      elements = []
      return taken
    }
    let taken = Array(elements.prefix(limit))
    elements.removeFirst(limit)
    return taken
  }

  /// Refuses further elements; what is in the queue is still handed out.
  func close() {
    pthread_mutex_lock(mutex)
    isClosed = true
    pthread_cond_broadcast(condition)
    pthread_mutex_unlock(mutex)
  }
}
