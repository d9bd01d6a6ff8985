import CLinux
import Glibc

/// A descriptor on a loop. The loop keeps it alive from `register` to
/// `closeDescriptor` and to the end of the tick in which that happens, so that a
/// readiness already fetched from the kernel finds an object.
class LoopSource {
  let loop: EventLoop
  private(set) var fd: Int32
  @exclusivity(unchecked) private var interest: UInt32 = 0

  init(loop: EventLoop, fd: Int32) {
    self.loop = loop
    self.fd = fd
  }

  /// The kernel says the descriptor is ready; `events` are epoll's.
  func ready(_ events: UInt32) {}

  /// The loop ends: close.
  func loopWillStop() { closeDescriptor() }

  final func register(_ events: UInt32) -> Bool {
    interest = events
    guard control(EPOLL_CTL_ADD) else { return false }
    loop.sources[ObjectIdentifier(self)] = self
    return true
  }

  /// Asks the kernel for other events; a call without a change costs nothing.
  final func want(_ events: UInt32) {
    guard events != interest, fd >= 0 else { return }
    interest = events
    _ = control(EPOLL_CTL_MOD)
  }

  final func closeDescriptor() {
    let fd = releaseDescriptor()
    if fd >= 0 { close(fd) }
  }

  /// Takes the descriptor off the loop and leaves it to the caller.
  final func releaseDescriptor() -> Int32 {
    guard fd >= 0 else { return -1 }
    _ = control(EPOLL_CTL_DEL)
    defer { fd = -1 }
    if let this = loop.sources.removeValue(forKey: ObjectIdentifier(self)) {
      loop.retired.append(this)
    }
    return fd
  }

  private func control(_ operation: Int32) -> Bool {
    var event = epoll_event()
    event.events = interest
    event.data.ptr = Unmanaged.passUnretained(self).toOpaque()
    return epoll_ctl(loop.epoll, operation, fd, &event) == 0
  }
}
