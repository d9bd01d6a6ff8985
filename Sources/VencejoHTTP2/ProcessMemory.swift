import CLinux

/// How this process's memory goes back to the system. For programs, once, before they serve: it
/// concerns the whole process, so the library does not decide it.
public enum ProcessMemory {
  /// Buffers of at least 256 KiB go back as soon as they are free. By itself glibc raises this
  /// threshold to what was freed last (mallopt(3), M_MMAP_THRESHOLD) and keeps in its heaps what
  /// a burst of slow readers once needed.
  public static func returnLargeBuffers() { mallopt(M_MMAP_THRESHOLD, 256 << 10) }
}
