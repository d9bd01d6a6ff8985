import Glibc
import Testing

@testable import VencejoHTTP2

func shutdownWrite(_ peer: RawPeer) { _ = shutdown(peer.fd, Int32(SHUT_WR)) }

@Suite struct FlowControlTests {
  /// RFC 9113, section 6.9: nothing beyond the peer's 65,535 bytes before it grants more.
  @Test func sendsNoMoreThanTheWindow() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/large", endStream: true)
    var got = 0
    while got < 65_535, let data = h.peer.next(Frame.data, stream: 1) { got += data.payload.count }
    #expect(got == 65_535)
    h.peer.frame(Frame.ping, 0, 0, [0, 0, 0, 0, 0, 0, 0, 1])
    let pong = h.peer.next(Frame.ping, ack: true)
    #expect(pong != nil && !h.peer.seen.contains { $0.type == Frame.data })
    h.peer.frame(Frame.windowUpdate, 0, 0, bigEndian(2_000_000))
    h.peer.frame(Frame.windowUpdate, 0, 1, bigEndian(2_000_000))
    while got < 1 << 20, let data = h.peer.next(Frame.data, stream: 1) { got += data.payload.count }
    #expect(got == 1 << 20)
    #expect(h.peer.next(Frame.headers, stream: 1)?.endsStream == true)
    #expect(h.closedCode(1) == 0)
  }

  @Test func nothingIsGrantedBeforeConsume() throws {
    let h = try Harness {
      $0.initialStreamWindow = 100_000
      $0.initialConnectionWindow = 100_000
    }
    h.peer.preface()
    // Until its acknowledgement a stream's window is the 65,535 bytes of the standard.
    h.peer.frame(Frame.settings, 1)
    // One at the start raises the connection's window from 65,535 to 100,000.
    let first = try #require(h.peer.next(Frame.windowUpdate))
    #expect(first.stream == 0 && first.word(0) == 34_465)
    h.peer.open(1, "/greedy")
    for _ in 0..<6 { h.peer.data(1, [UInt8](repeating: 0, count: 16_000)) }
    h.peer.frame(Frame.ping, 0, 0, [0, 0, 0, 0, 0, 0, 0, 1])
    #expect(h.peer.next(Frame.ping, ack: true) != nil)
    #expect(!h.peer.seen.contains { $0.type == Frame.windowUpdate })
    // A stream that is given up returns what it held: half the window and more.
    h.peer.frame(Frame.reset, 0, 1, bigEndian(HTTP2Code.cancel))
    let update = try #require(h.peer.next(Frame.windowUpdate))
    #expect(update.stream == 0 && update.word(0) == 96_000)
  }

  @Test func consumeGrantsStreamAndConnection() throws {
    let h = try Harness {
      $0.initialStreamWindow = 100_000
      $0.initialConnectionWindow = 100_000
    }
    h.peer.preface()
    h.peer.open(1, "/hold")
    for _ in 0..<6 { h.peer.data(1, [UInt8](repeating: 0, count: 16_000)) }
    var granted: [Int32: UInt32] = [:]
    while granted[1] ?? 0 < 48_000 || granted[0] ?? 0 < 34_465 + 48_000 {
      let update = try #require(h.peer.next(Frame.windowUpdate))
      granted[update.stream, default: 0] += update.word(0)
    }
    #expect(granted[1]! <= 96_000)
  }

  @Test func aPeerBeyondItsWindowIsReset() throws {
    let h = try Harness { $0.initialStreamWindow = 20_000 }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    h.peer.open(1, "/greedy")
    for _ in 0..<3 { h.peer.data(1, [UInt8](repeating: 0, count: 10_000)) }
    #expect(h.peer.next(Frame.reset, stream: 1)?.word(0) == HTTP2Code.flowControlError)
    #expect(h.closedCode(1) == HTTP2Code.flowControlError)
  }

  /// Arrays of every size, small ones gathered, come out in order.
  @Test func queuedBytesKeepTheirOrder() throws {
    let h = try Harness(isServer: false)
    h.peer.skipMagic()
    h.peer.settings([(4, 0x7fff_ffff)])
    h.peer.frame(Frame.windowUpdate, 0, 0, bigEndian(0x7fff_0000))
    let stream = try h.open("/order", endStream: false)
    let sizes = (0..<2_000).map { ($0 * 37) % 1_500 + ($0 % 97 == 0 ? 20_000 : 1) }
    try h.onLoop {
      var next = 0
      for size in sizes {
        stream.send(data: (next..<next + size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        next += size
      }
      #expect(stream.queuedBytes == next)
      stream.finish()
    }
    var got: [UInt8] = []
    while let data = h.peer.next(Frame.data, stream: 1) {
      got += data.payload
      if data.endsStream { break }
    }
    let total = sizes.reduce(0, +)
    #expect(got.count == total)
    let inOrder = got.indices.allSatisfy { got[$0] == UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    #expect(inOrder)
    #expect(try h.onLoop { stream.connection.queuedTotal } == 0)
  }

  /// A gibibyte for a peer with all the window there is that does not read.
  @Test func aStoppedReaderGrowsNothing() throws {
    let h = try Harness()
    h.peer.preface([(4, 0x7fff_ffff)])
    h.peer.frame(Frame.windowUpdate, 0, 0, bigEndian(0x7fff_ffff - 65_535))
    h.peer.open(1, "/flood", endStream: true)
    let connection = h.connection!
    var before = -1
    var (written, held) = (0, 0)
    for _ in 0..<200 where written != before || written == 0 {
      before = written
      poll(nil, 0, 10)
      (written, held) = try h.onLoop {
        let stream = connection.streams?.takeUnretainedValue()
        let left = (stream?.slot.object as? Recorder)?.left ?? 0
        return (
          (1 << 30) - left,
          connection.backlogEnd - connection.backlogOffset + connection.queuedTotal
        )
      }
    }
    #expect(written > 0 && written < 4 << 20)
    #expect(held < 1 << 20)
    // The reader wakes: it all comes.
    var got = 0
    while got < 64 << 20, let data = h.peer.next(Frame.data, stream: 1) {
      got += data.payload.count
    }
    #expect(got >= 64 << 20)
  }
}
