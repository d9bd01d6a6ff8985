import CTerminal
import Glibc

/// The two ends of a pty: the program's, and the one a person sits at.
final class PseudoTerminal {
  let person: Int32
  let program: Int32

  init?(columns: Int, lines: Int) {
    var (person, program): (Int32, Int32) = (-1, -1)
    var size = winsize(
      ws_row: UInt16(lines), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    guard openpty(&person, &program, nil, nil, &size) == 0 else { return nil }
    (self.person, self.program) = (person, program)
  }

  deinit {
    close(person)
    close(program)
  }

  func type(_ bytes: [UInt8]) {
    _ = bytes.withUnsafeBytes { write(person, $0.baseAddress, $0.count) }
  }

  /// What the program wrote; waits up to `milliseconds` for the first byte.
  func read(within milliseconds: Int32) -> [UInt8] {
    var entry = pollfd(fd: person, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, milliseconds) > 0 else { return [] }
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = Glibc.read(person, &buffer, buffer.count)
    return count > 0 ? Array(buffer[..<count]) : []
  }
}
