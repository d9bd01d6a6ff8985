"""Requests that are no requests (RFC 9113, section 8) and blocks that are none (RFC 7541)."""

from generic import _plain, _start
from h2 import *


def _refused(section: str, name: str, fields, *, end: bool = True):
    def run(link):
        link.send(HEADERS, END_HEADERS | (END_STREAM if end else 0), 1, block(fields(link)))
        link.stream_error(PROTOCOL_ERROR)
    run.__name__ = name
    case(section)(run)


def _with(*more):
    return lambda link: link.fields() + list(more)


def _without(name: str):
    return lambda link: [field for field in link.fields() if field[0] != name]


def _twice(name: str):
    return lambda link: [field for field in link.fields() for _ in range(1 + (field[0] == name))]


_refused("8.2.1", "upper_case_in_a_name", _with(("X-TEST", "ok")))
_refused("8.2.1", "line_break_in_a_value", _with(("x-test", "a\r\nb")))
_refused("8.2.1", "zero_octet_in_a_value", _with(("x-test", "a\0b")))
_refused("8.2.1", "space_in_a_name", _with(("x test", "ok")))
_refused("8.2.2", "connection", _with(("connection", "keep-alive")))
_refused("8.2.2", "keep_alive", _with(("keep-alive", "timeout=5")))
_refused("8.2.2", "proxy_connection", _with(("proxy-connection", "keep-alive")))
_refused("8.2.2", "transfer_encoding", _with(("transfer-encoding", "chunked")))
_refused("8.2.2", "upgrade", _with(("upgrade", "h2c")))
_refused("8.2.2", "te_other_than_trailers", _with(("te", "trailers, deflate")))
_refused("8.3", "unknown_pseudo_field", _with((":test", "ok")))
_refused("8.3", "pseudo_field_of_responses", _with((":status", "200")))
_refused("8.3", "pseudo_field_after_others",
         lambda link: [("x-test", "ok")] + link.fields())
_refused("8.3.1", "empty_path", lambda link: link.fields(path=""))
for _name in (":method", ":scheme", ":path"):
    _refused("8.3.1", f"without_{_name[1:]}", _without(_name))
    _refused("8.3.1", f"{_name[1:]}_twice", _twice(_name))
_refused("8.3.1", "authority_twice", _twice(":authority"))


@case("8.1")
def second_headers_without_end(link):
    link.request(1, "POST", end=False)
    link.send(HEADERS, END_HEADERS, 1, block([("x-test", "ok")]))
    link.stream_error(PROTOCOL_ERROR)


@case("8.1")
def data_after_trailers(link):
    link.request(1, "POST", end=False)
    link.send(HEADERS, END_HEADERS | END_STREAM, 1, block([("x-test", "ok")]))
    link.send(DATA, END_STREAM, 1, b"test")
    link.stream_error(STREAM_CLOSED)


@case("8.3")
def pseudo_field_in_trailers(link):
    link.request(1, "POST", end=False)
    link.send(DATA, 0, 1, b"test")
    link.send(HEADERS, END_HEADERS | END_STREAM, 1, block([(":method", "200")]))
    link.stream_error(PROTOCOL_ERROR)


@case("8.1.1")
def content_length_other_than_the_data(link):
    link.request(1, "POST", end=False, content_length="1")
    link.send(DATA, END_STREAM, 1, b"test")
    link.stream_error(PROTOCOL_ERROR)


@case("8.1.1")
def content_length_other_than_the_sum(link):
    link.request(1, "POST", end=False, content_length="1")
    link.send(DATA, 0, 1, b"test")
    link.send(DATA, END_STREAM, 1, b"test")
    link.stream_error(PROTOCOL_ERROR)


@case("8.1.1")
def content_length_without_data(link):
    link.request(1, "POST", content_length="4")
    link.stream_error(PROTOCOL_ERROR)


@case("8.4")
def push_promise_of_a_client(link):
    link.send(PUSH_PROMISE, END_HEADERS, 1, (3).to_bytes(4, "big") + block(link.fields()))
    link.connection_error(PROTOCOL_ERROR)


@case("8.1")
def te_trailers(link):
    link.request(1, te="trailers")
    link.response(1)


# 7: error codes

@case("7")
def goaway_with_unknown_code(link):
    link.send(GOAWAY, 0, 0, bytes(4) + (0xff).to_bytes(4, "big"))
    link.send(PING, 0, 0, b"unknown!")
    # It may answer, or take the GOAWAY for a goodbye.
    while frame := link.next():
        if frame.kind == PING or frame.kind == GOAWAY:
            return


@case("7")
def rst_stream_with_unknown_code(link):
    link.request(1, "POST", end=False)
    link.send(RST_STREAM, 0, 1, (0xff).to_bytes(4, "big"))
    link.alive()


# RFC 7541

def _broken(section: str, name: str, octets: bytes, at_end: bool = True):
    def run(link):
        link.send(HEADERS, END_STREAM | END_HEADERS, 1,
                  _start(link) + octets if at_end else octets + _start(link))
        link.connection_error(COMPRESSION_ERROR)
    run.__name__ = name
    case(f"hpack {section}")(run)


_broken("2.3.3", "index_beyond_the_tables", b"\xc6")
_broken("2.3.3", "name_beyond_the_tables", b"\x7f\x05" + _plain(b"test"))
_broken("4.2", "size_update_after_a_field", b"\x21")
# 'test' in Huffman's code, then what is no padding: nine bits, zeros, and the code EOS.
_broken("5.2", "huffman_padding_longer_than_7_bits",
        b"\x00" + _plain(b"x-test") + b"\x84\x49\x50\x9f\xff")
_broken("5.2", "huffman_padding_of_zeros", b"\x00" + _plain(b"x-test") + b"\x83\x49\x50\x90")
_broken("5.2", "huffman_eos", b"\x00" + _plain(b"x-test") + b"\x88\x49\x50\x9f\xff\xff\xff\xff\xff")
_broken("6.1", "index_0", b"\x80")
_broken("6.3", "size_update_above_the_setting", b"\x3f\xe1\xff\x03", at_end=False)
_broken("5.1", "integer_without_end", b"\x00\x7f" + b"\xff" * 12)
_broken("5.2", "string_longer_than_the_block", b"\x00\x06x-test\x7f\x01ok")
