import CNGHTTP2

/// nghttp2's callbacks, the same for every session.
///
/// `@unchecked Sendable`: filled once, then only read by nghttp2.
final class SessionCallbacks: @unchecked Sendable {
  static let shared = SessionCallbacks()
  let pointer: OpaquePointer?

  private init() {
    var made: OpaquePointer?
    nghttp2_session_callbacks_new(&made)
    pointer = made
    nghttp2_session_callbacks_set_send_callback(made, onSend)
    nghttp2_session_callbacks_set_send_data_callback(made, onSendData)
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, onBeginHeaders)
    nghttp2_session_callbacks_set_on_header_callback(made, onHeader)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, onData)
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, onFrame)
    nghttp2_session_callbacks_set_on_frame_send_callback(made, onFrameSent)
    nghttp2_session_callbacks_set_on_stream_close_callback(made, onStreamClose)
  }
}

private let failed = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

@inline(__always)
private func with<R>(_ pointer: UnsafeMutableRawPointer?, _ body: (HTTP2Connection) -> R) -> R? {
  guard let pointer else { return nil }
  return Unmanaged<HTTP2Connection>.fromOpaque(pointer)._withUnsafeGuaranteedRef(body)
}

/// The stream nghttp2 knows under `id`.
@inline(__always)
private func stream(_ session: OpaquePointer?, _ id: Int32) -> Unmanaged<HTTP2Stream>? {
  guard let pointer = nghttp2_session_get_stream_user_data(session, id) else { return nil }
  return Unmanaged<HTTP2Stream>.fromOpaque(pointer)
}

/// A frame's head, read alone: the union around it is large.
@inline(__always)
private func head(_ frame: UnsafePointer<nghttp2_frame>) -> nghttp2_frame_hd {
  UnsafeRawPointer(frame).load(as: nghttp2_frame_hd.self)
}

private let onSend: nghttp2_send_callback = { _, bytes, count, _, user in
  guard let bytes else { return Int(failed) }
  return with(user) { $0.append(bytes, count) } ?? Int(failed)
}

private let onSendData: nghttp2_send_data_callback = { _, _, head, length, source, user in
  guard let head, let pointer = source?.pointee.ptr else { return failed }
  return with(user) { connection in
    Unmanaged<HTTP2Stream>.fromOpaque(pointer)._withUnsafeGuaranteedRef {
      connection.append(head, length, of: $0)
    }
  } ?? failed
}

private let onBeginHeaders: nghttp2_on_begin_headers_callback = { session, frame, user in
  guard let frame else { return failed }
  return with(user) { connection in
    guard !connection.isTerminating else { return failed }
    let id = head(frame).stream_id
    connection.headersSince = connection.loop.now
    if connection.isServer && frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
      return connection.beginRequest(id)
    }
    let found = stream(session, id)
    found?._withUnsafeGuaranteedRef { $0.headerListSize = 0 }
    connection.decoding = found
    return 0
  } ?? failed
}

private let onHeader: nghttp2_on_header_callback = {
  _, _, name, nameLength, value, valueLength, _, user in
  with(user) { connection in
    guard let found = connection.decoding else {
      return connection.isTerminating ? failed : 0
    }
    return found._withUnsafeGuaranteedRef {
      connection.decode(
        $0, UnsafeRawBufferPointer(start: name, count: nameLength),
        UnsafeRawBufferPointer(start: value, count: valueLength))
    }
  } ?? failed
}

private let onData: nghttp2_on_data_chunk_recv_callback = {
  session, flags, id, bytes, count, user in
  with(user) { connection in
    guard !connection.isTerminating else { return failed }
    connection.receivedBytes &+= count
    if connection.receivedBytes >= connection.nextProbe { connection.probeBandwidth() }
    guard let found = stream(session, id) else {
      connection.credit &+= count
      return 0
    }
    found._withUnsafeGuaranteedRef { stream in
      guard !stream.isReset, !stream.isClosed else {
        connection.credit &+= count
        return
      }
      if flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 { stream.inboundEnding = true }
      stream.unconsumed &+= Int32(truncatingIfNeeded: count)
      stream.slot.data(stream, UnsafeRawBufferPointer(start: bytes, count: count))
    }
    return 0
  } ?? failed
}

private let onFrame: nghttp2_on_frame_recv_callback = { session, frame, user in
  guard let frame else { return failed }
  return with(user) { connection in
    guard !connection.isTerminating else { return failed }
    let head = head(frame)
    let ends = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    switch nghttp2_frame_type(UInt32(head.type)) {
    case NGHTTP2_HEADERS:
      connection.headersSince = 0
      connection.decoding = nil
      guard let found = stream(session, head.stream_id) else { return 0 }
      found._withUnsafeGuaranteedRef { connection.headersDidEnd($0, ends) }
    case NGHTTP2_DATA:
      if ends {
        stream(session, head.stream_id)?._withUnsafeGuaranteedRef { connection.remoteDidEnd($0) }
      } else if head.length == 0 {
        connection.countIdleFrame("empty DATA frames")
      }
    default:
      connection.receiveControl(frame, head)
    }
    return connection.isTerminating ? failed : 0
  } ?? failed
}

private let onFrameSent: nghttp2_on_frame_send_callback = { session, frame, user in
  guard let frame else { return failed }
  let head = head(frame)
  let type = nghttp2_frame_type(UInt32(head.type))
  _ = with(user) { connection in
    if type == NGHTTP2_DATA || type == NGHTTP2_HEADERS {
      connection.idleFrames.refill()
      if connection.earlyFinishes > 0,
        head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
      {
        stream(session, head.stream_id)?._withUnsafeGuaranteedRef { connection.localDidEnd($0) }
      }
    } else if type == NGHTTP2_RST_STREAM {
      connection.countSentReset(frame.pointee.rst_stream.error_code)
    } else if type == NGHTTP2_GOAWAY {
      connection.goAwaySent(frame.pointee.goaway)
    }
  }
  return 0
}

private let onStreamClose: nghttp2_on_stream_close_callback = { session, id, code, user in
  with(user) { connection in
    if let found = stream(session, id) {
      nghttp2_session_set_stream_user_data(session, id, nil)
      connection.close(found, code: code)
    }
    return 0
  } ?? failed
}
