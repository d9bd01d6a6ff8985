import CLinux
import Synchronization

/// Several loops, one thread each.
public final class EventLoopGroup: Sendable {
  /// The loops, in order.
  public let loops: [EventLoop]
  private let turn = Atomic<Int>(0)

  /// Starts `count` loops, or one for each core this process may use.
  public init(count: Int? = nil, name: String = "vencejo") throws(HTTP2Error) {
    let wanted = max(1, count ?? Self.usableCores)
    var made: [EventLoop] = []
    do throws(HTTP2Error) {
      for i in 0..<wanted { made.append(try EventLoop(name: "\(name)-\(i)")) }
    } catch {
      for loop in made { loop.shutdown() }
      throw error
    }
    loops = made
  }

  /// Cores the process may run on.
  public static var usableCores: Int { Int(linux_usable_cores()) }

  /// One loop after the other.
  public func next() -> EventLoop {
    let n = turn.wrappingAdd(1, ordering: .relaxed).oldValue
    return loops[Int(UInt(bitPattern: n) % UInt(loops.count))]
  }

  /// Ends all of them.
  public func shutdown() {
    for loop in loops { loop.shutdown() }
  }
}
