"""What a server must refuse, and how (RFC 9113, sections 3 to 8)."""

from generic import priority
from h2 import *

WRONG_LENGTHS = (0, 3, 7, 9)


# 3.4: the preface

@case("3.4", handshake=False)
def invalid_preface(link):
    link.raw(b"INVALID CONNECTION PREFACE\r\n\r\n")
    link.connection_error(PROTOCOL_ERROR)


@case("3.4", handshake=False)
def preface_without_settings(link):
    link.raw(wire.PREFACE)
    link.send(PING, 0, 0, bytes(8))
    link.connection_error(PROTOCOL_ERROR)


# 4: frames

@case("4.1")
def unknown_frame_type(link):
    link.send(0x16, 0, 0, bytes(8))
    link.alive()


@case("4.1")
def undefined_flags(link):
    link.send(PING, 0x16, 0, b"undefine")
    link.until(lambda frame: frame.kind == PING and frame.flags & ACK)


@case("4.1")
def reserved_bit_of_the_stream(link):
    link.send(PING, 0, 1 << 31, b"reserved")
    link.until(lambda frame: frame.kind == PING and frame.flags & ACK)


@case("4.2")
def data_of_the_largest_size(link):
    link.request(1, "POST", end=False)
    link.send(DATA, END_STREAM, 1, bytes(16384))
    link.response(1)


@case("4.2")
def data_larger_than_allowed(link):
    size = link.peer_settings.get(MAX_FRAME_SIZE, 16384) + 1
    link.request(1, "POST", end=False)
    link.send(DATA, END_STREAM, 1, bytes(size))
    link.stream_error(FRAME_SIZE_ERROR)


@case("4.2")
def headers_larger_than_allowed(link):
    size = link.peer_settings.get(MAX_FRAME_SIZE, 16384) + 1
    fields = block(link.fields())
    link.send(HEADERS, END_STREAM | END_HEADERS, 1, fields + bytes(size - len(fields)))
    link.connection_error(FRAME_SIZE_ERROR)


@case("4.3")
def broken_header_block(link):
    link.send(HEADERS, END_STREAM | END_HEADERS, 1, b"\x40\x4a" + b"f" * 3)
    link.connection_error(COMPRESSION_ERROR)


@case("4.3")
def priority_within_a_header_block(link):
    link.send(HEADERS, END_STREAM, 1, block(link.fields()))
    link.send(PRIORITY, 0, 1, priority())
    link.connection_error(PROTOCOL_ERROR)


@case("4.3")
def headers_of_another_stream_within_a_header_block(link):
    link.send(HEADERS, END_STREAM, 1, block(link.fields()))
    link.request(3)
    link.connection_error(PROTOCOL_ERROR)


# 5.1: states

@case("5.1 idle")
def data_on_idle(link):
    link.send(DATA, END_STREAM, 1, b"test")
    link.connection_error(PROTOCOL_ERROR, STREAM_CLOSED)


@case("5.1 idle")
def rst_stream_on_idle(link):
    link.send(RST_STREAM, 0, 1, CANCEL.to_bytes(4, "big"))
    link.connection_error(PROTOCOL_ERROR)


@case("5.1 idle")
def window_update_on_idle(link):
    link.send(WINDOW_UPDATE, 0, 1, (100).to_bytes(4, "big"))
    link.connection_error(PROTOCOL_ERROR)


@case("5.1 idle")
def continuation_on_idle(link):
    link.send(CONTINUATION, END_HEADERS, 1, block(link.fields()))
    link.connection_error(PROTOCOL_ERROR)


@case("5.1 half-closed")
def data_on_half_closed_remote(link):
    link.request(1)
    link.send(DATA, END_STREAM, 1, b"test")
    link.stream_error(STREAM_CLOSED)


@case("5.1 half-closed")
def headers_on_half_closed_remote(link):
    link.request(1)
    link.request(1)
    link.stream_error(STREAM_CLOSED)


@case("5.1 half-closed")
def continuation_on_half_closed_remote(link):
    link.request(1)
    link.send(CONTINUATION, END_HEADERS, 1, block(link.fields()))
    link.stream_error(STREAM_CLOSED, PROTOCOL_ERROR)


def _reset(link):
    link.request(1, "POST", end=False)
    link.send(RST_STREAM, 0, 1, CANCEL.to_bytes(4, "big"))


def _ended(link):
    link.request(1)
    link.response(1)


for _name, _close in (("after_rst_stream", _reset), ("after_the_end", _ended)):
    def _data(link, close=_close):
        close(link)
        link.send(DATA, END_STREAM, 1, b"test")
        link.stream_error(STREAM_CLOSED)

    def _headers(link, close=_close):
        close(link)
        link.request(1)
        link.stream_error(STREAM_CLOSED)

    def _continuation(link, close=_close):
        close(link)
        link.send(CONTINUATION, END_HEADERS, 1, block(link.fields()))
        link.stream_error(STREAM_CLOSED, PROTOCOL_ERROR)

    for _frame, _run in (("data", _data), ("headers", _headers), ("continuation", _continuation)):
        _run.__name__ = f"{_frame}_{_name}"
        case("5.1 closed")(_run)


@case("5.1.1")
def even_stream_identifier(link):
    link.request(2)
    link.connection_error(PROTOCOL_ERROR)


@case("5.1.1")
def smaller_stream_identifier(link):
    link.request(5)
    link.response(5)
    link.request(3)
    link.connection_error(PROTOCOL_ERROR, STREAM_CLOSED)


@case("5.1.2")
def more_streams_than_allowed(link):
    limit = link.peer_settings.get(MAX_CONCURRENT_STREAMS)
    if limit is None or limit > 10_000:
        return
    for number in range(limit + 1):
        link.request(1 + 2 * number, "POST", end=False)
    link.stream_error(PROTOCOL_ERROR, REFUSED_STREAM)


@case("5.3.1")
def headers_depend_on_themselves(link):
    # RFC 9113 says no more than that priorities may be ignored; RFC 7540 called it an error.
    link.send(HEADERS, END_STREAM | END_HEADERS | PRIORITIZED, 1,
              priority(1) + block(link.fields()))
    link.stream_error(PROTOCOL_ERROR)


@case("5.3.1")
def priority_depends_on_itself(link):
    link.send(PRIORITY, 0, 1, priority(1))
    link.stream_error(PROTOCOL_ERROR)


@case("5.4.1")
def closes_after_a_connection_error(link):
    link.send(PING, 0, 3, bytes(8))
    while link.next() is not None:
        pass


@case("5.4.1")
def goaway_before_it_closes(link):
    link.send(PING, 0, 3, bytes(8))
    link.until(lambda frame: frame.kind == GOAWAY)


@case("5.5")
def unknown_frame_of_a_stream(link):
    link.request(1, "POST", end=False)
    link.send(0x16, 0xff, 1, b"whatever")
    link.send(DATA, END_STREAM, 1, b"test")
    link.response(1)


@case("5.5")
def unknown_frame_within_a_header_block(link):
    link.send(HEADERS, END_STREAM, 1, block(link.fields()))
    link.send(0x16, 0, 1, b"whatever")
    link.connection_error(PROTOCOL_ERROR)


# 6: each frame

@case("6.1")
def data_on_stream_0(link):
    link.send(DATA, END_STREAM, 0, b"test")
    link.connection_error(PROTOCOL_ERROR)


@case("6.1")
def data_padding_as_long_as_the_frame(link):
    link.request(1, "POST", end=False, content_length="4")
    link.send(DATA, END_STREAM | PADDED, 1, b"\x05test")
    link.connection_error(PROTOCOL_ERROR)


@case("6.2")
def headers_on_stream_0(link):
    link.request(0)
    link.connection_error(PROTOCOL_ERROR)


@case("6.2")
def headers_padding_longer_than_the_frame(link):
    fields = block(link.fields())
    link.send(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, bytes([len(fields) + 1]) + fields)
    link.connection_error(PROTOCOL_ERROR)


@case("6.2")
def data_within_a_header_block(link):
    link.send(HEADERS, 0, 1, block(link.fields("POST")))
    link.send(DATA, END_STREAM, 1, b"test")
    link.connection_error(PROTOCOL_ERROR)


@case("6.3")
def priority_on_stream_0(link):
    link.send(PRIORITY, 0, 0, priority())
    link.connection_error(PROTOCOL_ERROR)


@case("6.3")
def priority_of_4_octets(link):
    link.request(1, "POST", end=False)
    link.send(PRIORITY, 0, 1, bytes(4))
    link.stream_error(FRAME_SIZE_ERROR)


@case("6.4")
def rst_stream_on_stream_0(link):
    link.send(RST_STREAM, 0, 0, bytes(4))
    link.connection_error(PROTOCOL_ERROR)


@case("6.4")
def rst_stream_of_3_octets(link):
    link.request(1, "POST", end=False)
    link.send(RST_STREAM, 0, 1, bytes(3))
    link.connection_error(FRAME_SIZE_ERROR)


@case("6.5")
def settings_ack_with_payload(link):
    link.send(SETTINGS, ACK, 0, settings(max_concurrent_streams=1))
    link.connection_error(FRAME_SIZE_ERROR)


@case("6.5")
def settings_on_a_stream(link):
    link.send(SETTINGS, 0, 1, settings(max_concurrent_streams=1))
    link.connection_error(PROTOCOL_ERROR)


@case("6.5")
def settings_of_3_octets(link):
    link.send(SETTINGS, 0, 0, bytes(3))
    link.connection_error(FRAME_SIZE_ERROR)


@case("6.5.2")
def enable_push_2(link):
    link.send(SETTINGS, 0, 0, settings(enable_push=2))
    link.connection_error(PROTOCOL_ERROR)


@case("6.5.2")
def initial_window_size_above_the_maximum(link):
    link.send(SETTINGS, 0, 0, settings(initial_window_size=1 << 31))
    link.connection_error(FLOW_CONTROL_ERROR)


@case("6.5.2")
def max_frame_size_below_the_minimum(link):
    link.send(SETTINGS, 0, 0, settings(max_frame_size=16383))
    link.connection_error(PROTOCOL_ERROR)


@case("6.5.2")
def max_frame_size_above_the_maximum(link):
    link.send(SETTINGS, 0, 0, settings(max_frame_size=1 << 24))
    link.connection_error(PROTOCOL_ERROR)


@case("6.5.2")
def unknown_setting(link):
    link.send(SETTINGS, 0, 0, b"\x00\xff\x00\x00\x00\x01")
    link.alive()


@case("6.5.3")
def setting_given_twice(link):
    link.send(SETTINGS, 0, 0, settings(initial_window_size=100) + settings(initial_window_size=1))
    link.request(1)
    frame = link.until(lambda frame: frame.kind == DATA)
    if len(frame.payload) != 1:
        raise Failed(f"{len(frame.payload)} bytes where the window is 1")


@case("6.7")
def ping_with_ack(link):
    link.send(PING, ACK, 0, b"ignored!")
    link.send(PING, 0, 0, b"answered")
    frame = link.until(lambda frame: frame.kind == PING)
    if frame.payload != b"answered":
        raise Failed(f"{frame}")


@case("6.7")
def ping_on_a_stream(link):
    link.send(PING, 0, 1, bytes(8))
    link.connection_error(PROTOCOL_ERROR)


@case("6.7")
def ping_of_6_octets(link):
    link.send(PING, 0, 0, bytes(6))
    link.connection_error(FRAME_SIZE_ERROR)


@case("6.8")
def goaway_on_a_stream(link):
    link.send(GOAWAY, 0, 1, bytes(8))
    link.connection_error(PROTOCOL_ERROR)


@case("6.9")
def window_update_of_0(link):
    link.send(WINDOW_UPDATE, 0, 0, bytes(4))
    link.connection_error(PROTOCOL_ERROR)


@case("6.9")
def window_update_of_0_on_a_stream(link):
    link.request(1, "POST", end=False)
    link.send(WINDOW_UPDATE, 0, 1, bytes(4))
    link.stream_error(PROTOCOL_ERROR)


@case("6.9")
def window_update_of_3_octets(link):
    link.send(WINDOW_UPDATE, 0, 0, bytes(3))
    link.connection_error(FRAME_SIZE_ERROR)


@case("6.9.1", handshake=False)
def sends_no_more_than_the_window(link):
    link.handshake(initial_window_size=1)
    link.request(1)
    frame = link.until(lambda frame: frame.kind == DATA)
    if len(frame.payload) != 1:
        raise Failed(f"{len(frame.payload)} bytes where the window is 1")


@case("6.9.1")
def window_of_the_connection_overflows(link):
    for _ in range(2):
        link.send(WINDOW_UPDATE, 0, 0, (0x7FFFFFFF).to_bytes(4, "big"))
    link.connection_error(FLOW_CONTROL_ERROR)


@case("6.9.1")
def window_of_a_stream_overflows(link):
    link.request(1, "POST", end=False)
    for _ in range(2):
        link.send(WINDOW_UPDATE, 0, 1, (0x7FFFFFFF).to_bytes(4, "big"))
    link.stream_error(FLOW_CONTROL_ERROR)


@case("6.9.2", handshake=False)
def window_grows_by_settings(link):
    link.handshake(initial_window_size=0)
    link.request(1)
    link.until(lambda frame: frame.kind == HEADERS)
    link.send(SETTINGS, 0, 0, settings(initial_window_size=1))
    frame = link.until(lambda frame: frame.kind == DATA)
    if len(frame.payload) != 1:
        raise Failed(f"{len(frame.payload)} bytes where the window is 1")


@case("6.9.2", handshake=False)
def window_below_zero(link):
    link.handshake(initial_window_size=3)
    link.request(1)
    frame = link.until(lambda frame: frame.kind == DATA)
    if len(frame.payload) != 3:
        raise Failed(f"{len(frame.payload)} bytes where the window is 3")
    link.send(SETTINGS, 0, 0, settings(initial_window_size=2))
    link.settings_acknowledged()
    link.send(WINDOW_UPDATE, 0, 1, (2).to_bytes(4, "big"))
    frame = link.until(lambda frame: frame.kind == DATA)
    if len(frame.payload) != 1:
        raise Failed(f"{len(frame.payload)} bytes where the window is 1")


@case("6.9.2")
def settings_overflow_a_window(link):
    link.request(1, "POST", end=False)
    link.send(WINDOW_UPDATE, 0, 1, (0x7FFFFFFF - 65535).to_bytes(4, "big"))
    link.send(SETTINGS, 0, 0, settings(initial_window_size=65536))
    link.connection_error(FLOW_CONTROL_ERROR)


@case("6.10")
def continuation_followed_by_another_frame(link):
    fields = block(link.fields())
    link.send(HEADERS, END_STREAM, 1, fields[:20])
    link.send(CONTINUATION, 0, 1, fields[20:])
    link.send(DATA, END_STREAM, 1, b"test")
    link.connection_error(PROTOCOL_ERROR)


@case("6.10")
def continuation_on_stream_0(link):
    fields = block(link.fields())
    link.send(HEADERS, END_STREAM, 1, fields[:20])
    link.send(CONTINUATION, END_HEADERS, 0, fields[20:])
    link.connection_error(PROTOCOL_ERROR)


@case("6.10")
def continuation_after_the_last_of_headers(link):
    link.request(1, "POST", end=False)
    link.send(CONTINUATION, END_HEADERS, 1, block([("x-test", "ok")]))
    link.connection_error(PROTOCOL_ERROR)


@case("6.10")
def continuation_after_the_last_continuation(link):
    fields = block(link.fields("POST"))
    link.send(HEADERS, 0, 1, fields[:20])
    link.send(CONTINUATION, END_HEADERS, 1, fields[20:])
    link.send(CONTINUATION, END_HEADERS, 1, block([("x-test", "ok")]))
    link.connection_error(PROTOCOL_ERROR)


@case("6.10")
def continuation_after_data(link):
    link.request(1, "POST", end=False)
    link.send(DATA, 0, 1, b"test")
    link.send(CONTINUATION, END_HEADERS, 1, block([("x-test", "ok")]))
    link.connection_error(PROTOCOL_ERROR)
