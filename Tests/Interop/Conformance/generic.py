"""What every server must be able to do: each frame, each kind of request, each form of HPACK."""

import hpack

from h2 import *


def priority(depends_on: int = 0, weight: int = 16, exclusive: bool = False) -> bytes:
    return ((exclusive << 31) | depends_on).to_bytes(4, "big") + bytes([weight - 1])


@case("3.4", handshake=False)
def preface(link):
    link.handshake()
    link.request()
    link.response()


@case("5.1")
def priority_on_idle_stream(link):
    link.send(PRIORITY, 0, 1, priority())
    link.request(1)
    link.response(1)


@case("5.1")
def window_update_on_half_closed_remote(link):
    link.request(1)
    link.send(WINDOW_UPDATE, 0, 1, (100).to_bytes(4, "big"))
    link.response(1)


@case("5.1")
def priority_on_half_closed_remote(link):
    link.request(1)
    link.send(PRIORITY, 0, 1, priority())
    link.response(1)


@case("5.1")
def rst_stream_on_half_closed_remote(link):
    link.request(1)
    link.send(RST_STREAM, 0, 1, CANCEL.to_bytes(4, "big"))
    link.alive()


@case("5.1")
def priority_on_closed_stream(link):
    link.request(1)
    link.response(1)
    link.send(PRIORITY, 0, 1, priority())
    link.alive()


@case("6.1")
def data_frame(link):
    link.request(1, "POST", end=False, content_length="4")
    link.send(DATA, END_STREAM, 1, b"test")
    link.response(1)


@case("6.1")
def several_data_frames(link):
    link.request(1, "POST", end=False)
    link.send(DATA, 0, 1, b"test")
    link.send(DATA, 0, 1, b"")
    link.send(DATA, END_STREAM, 1, b"test")
    link.response(1)


@case("6.1")
def data_frame_with_padding(link):
    link.request(1, "POST", end=False, content_length="4")
    link.send(DATA, END_STREAM | PADDED, 1, b"\x05test" + bytes(5))
    link.response(1)


@case("6.1")
def data_frame_of_padding_alone(link):
    link.request(1, "POST", end=False, content_length="0")
    link.send(DATA, END_STREAM | PADDED, 1, b"\xff" + bytes(255))
    link.response(1)


@case("6.2")
def headers_frame(link):
    link.request(1)
    link.response(1)


@case("6.2")
def headers_frame_with_padding(link):
    link.send(HEADERS, END_STREAM | END_HEADERS | PADDED, 1,
              b"\x05" + block(link.fields()) + bytes(5))
    link.response(1)


@case("6.2")
def headers_frame_with_priority(link):
    link.send(HEADERS, END_STREAM | END_HEADERS | PRIORITIZED, 1,
              priority(0, 256) + block(link.fields()))
    link.response(1)


@case("6.2")
def headers_frame_with_priority_and_padding(link):
    link.send(HEADERS, END_STREAM | END_HEADERS | PRIORITIZED | PADDED, 1,
              b"\x03" + priority() + block(link.fields()) + bytes(3))
    link.response(1)


def _priority(payload: bytes):
    def run(link):
        link.send(PRIORITY, 0, 1, payload)
        link.request(1)
        link.response(1)
        link.send(PRIORITY, 0, 1, payload)
        link.alive()
    return run


for _name, _payload in {
    "priority_weight_1": priority(0, 1), "priority_weight_256": priority(0, 256),
    "priority_with_dependency": priority(3), "priority_exclusive": priority(3, exclusive=True),
}.items():
    _run = _priority(_payload)
    _run.__name__ = _name
    case("6.3")(_run)


@case("6.3")
def priority_for_idle_stream_then_lower_request(link):
    link.send(PRIORITY, 0, 5, priority())
    link.request(3)
    link.response(3)


@case("6.4")
def rst_stream_frame(link):
    link.request(1, "POST", end=False)
    link.send(RST_STREAM, 0, 1, CANCEL.to_bytes(4, "big"))
    link.alive()
    link.request(3)
    link.response(3)


@case("6.5")
def settings_frame(link):
    link.send(SETTINGS, payload=settings(max_concurrent_streams=100))
    link.settings_acknowledged()


@case("6.7")
def ping_frame(link):
    link.alive()


@case("6.8")
def goaway_frame(link):
    link.request(1)
    link.send(GOAWAY, payload=bytes(8))
    link.response(1)


@case("6.9")
def window_update_of_the_connection(link):
    link.send(WINDOW_UPDATE, 0, 0, (1).to_bytes(4, "big"))
    link.request(1)
    link.response(1)


@case("6.9")
def window_update_of_a_stream(link):
    link.request(1, "POST", end=False)
    link.send(WINDOW_UPDATE, 0, 1, (1).to_bytes(4, "big"))
    link.send(DATA, END_STREAM, 1, b"test")
    link.response(1)


@case("6.10")
def continuation_frame(link):
    whole = block(link.fields())
    link.send(HEADERS, END_STREAM, 1, whole[:20])
    link.send(CONTINUATION, END_HEADERS, 1, whole[20:])
    link.response(1)


@case("6.10")
def several_continuation_frames(link):
    whole = block(link.fields())
    link.send(HEADERS, END_STREAM, 1, whole[:20])
    link.send(CONTINUATION, 0, 1, whole[20:40])
    link.send(CONTINUATION, 0, 1, b"")
    link.send(CONTINUATION, END_HEADERS, 1, whole[40:])
    link.response(1)


@case("8.1")
def get_request(link):
    link.request(1)
    fields, body = link.response(1)
    if not body:
        raise Failed("no body")
    if int(fields.get("content-length", len(body))) != len(body):
        raise Failed(f"{fields} and {len(body)} bytes")


@case("8.1")
def head_request(link):
    link.request(1, "HEAD")
    _, body = link.response(1)
    if body:
        raise Failed("a body")


@case("8.1")
def post_request(link):
    link.request(1, "POST", end=False)
    link.send(DATA, END_STREAM, 1, b"test")
    link.response(1)


@case("8.1")
def post_request_with_trailers(link):
    link.request(1, "POST", end=False, trailer="x-test")
    link.send(DATA, 0, 1, b"test")
    link.send(HEADERS, END_STREAM | END_HEADERS, 1, block([("x-test", "ok")]))
    link.response(1)


# RFC 7541, section 6: each way to write a field.

def _start(link, path: bytes = b"\x84") -> bytes:
    # :method GET, :scheme, :path / and :authority, from the static table where it has them.
    scheme = b"\x86" if link.scheme == "http" else b"\x87"
    return b"\x82" + scheme + path + b"\x01\x0cvencejo.test"


def _hpack(name: str, *octets: bytes):
    def run(link):
        # Twice on a connection: what the first left in the tables must not hurt the second.
        for stream in (1, 3):
            link.send(HEADERS, END_STREAM | END_HEADERS, stream, _start(link) + b"".join(octets))
            link.response(stream)
    run.__name__ = name
    case("hpack 6")(run)


def _huffman(text: bytes) -> bytes:
    from hpack.huffman import HuffmanEncoder
    from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
    coded = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(text)
    return bytes([0x80 | len(coded)]) + coded


def _plain(text: bytes) -> bytes:
    return bytes([len(text)]) + text


for _form, _bits, _size in (("with_incremental_indexing", 0x40, 6), ("without_indexing", 0, 4),
                            ("never_indexed", 0x10, 4)):
    # user-agent is entry 58 of the static table.
    _index = bytes([_bits | 58]) if _size == 6 else bytes([_bits | 15, 58 - 15])
    for _coding, _string in (("", _plain), ("_huffman", _huffman)):
        _hpack(f"literal_{_form}_indexed_name{_coding}", _index + _string(b"test"))
        _hpack(f"literal_{_form}_new_name{_coding}",
               bytes([_bits]) + _string(b"x-test") + _string(b"test"))


@case("hpack 6.1")
def indexed_field_of_the_dynamic_table(link):
    link.send(HEADERS, END_STREAM | END_HEADERS, 1,
              _start(link) + b"\x40" + _plain(b"x-test") + _plain(b"test"))
    link.response(1)
    link.send(HEADERS, END_STREAM | END_HEADERS, 3, _start(link) + b"\xbe")
    link.response(3)


@case("hpack 6.3")
def dynamic_table_size_update(link):
    link.send(HEADERS, END_STREAM | END_HEADERS, 1, b"\x3f\x09" + _start(link))
    link.response(1)


@case("hpack 6.3")
def several_dynamic_table_size_updates(link):
    link.send(HEADERS, END_STREAM | END_HEADERS, 1, b"\x20\x3f\x09" + _start(link))
    link.response(1)
