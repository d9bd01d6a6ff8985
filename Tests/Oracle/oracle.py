"""Answers questions about messages with Google's Python protobuf.

Frames on standard input and output: a 32-bit little-endian length, then as many bytes.
A request is an operation (one byte), a message's name and any number of arguments, each
behind its length; an answer is one (success byte, result behind its length) per argument.
"""

import math
import random
import struct
import sys

from google.protobuf import descriptor_pool, json_format, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.field_mask_pb2 import FieldMask

pool = descriptor_pool.DescriptorPool()
source, sink = sys.stdin.buffer, sys.stdout.buffer


def message_class(name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


# Without NUL in strings and -0.0, which protobuf-c cannot hold.
plain = False


def random_string(r):
    alphabet = "abcXYZ 012_\"\\/\n\t\0<>&é߿ࠀ漢\uffff😀\u2028"
    if plain:
        alphabet = alphabet.replace("\0", "")
    return "".join(r.choice(alphabet) for _ in range(r.choice([0, 1, 3, 15, 16, 40])))


def random_bytes(r):
    return bytes(r.randrange(256) for _ in range(r.choice([0, 1, 2, 3, 20])))


def random_integer(r, low, high):
    return r.choice([low, high, 0, 1, max(low, -1), r.randint(low, high),
                     min(high, 1 << r.randrange(0, 63)), min(high, 127), min(high, 128)])


def random_scalar(r, field, finite):
    value = random_scalar_or_zero(r, field, finite)
    return 0.0 if plain and isinstance(value, float) and value == 0 else value


def random_scalar_or_zero(r, field, finite):
    t = field.type
    if t == F.TYPE_DOUBLE:
        special = [0.0, -0.0, 1.5, 5e-324, 1.7976931348623157e308, 0.1, 1e21, 123456789.0]
        if not finite:
            special += [math.inf, -math.inf, math.nan]
        return r.choice(special + [r.uniform(-1e6, 1e6), r.uniform(-1, 1) * 10.0 ** r.randint(-300, 300)])
    if t == F.TYPE_FLOAT:
        special = [0.0, -0.0, 1.5, 1e-45, 3.4e38, 0.1, 16777216.0]
        if not finite:
            # json_format refuses the largest float's shortest form.
            special += [3.4028234663852886e38, math.inf, -math.inf, math.nan]
        return r.choice(special + [r.uniform(-1e6, 1e6)])
    if t in (F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32):
        return random_integer(r, -(1 << 31), (1 << 31) - 1)
    if t in (F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64):
        return random_integer(r, -(1 << 63), (1 << 63) - 1)
    if t in (F.TYPE_UINT32, F.TYPE_FIXED32):
        return random_integer(r, 0, (1 << 32) - 1)
    if t in (F.TYPE_UINT64, F.TYPE_FIXED64):
        return random_integer(r, 0, (1 << 64) - 1)
    if t == F.TYPE_BOOL:
        return r.random() < 0.5
    if t == F.TYPE_STRING:
        return random_string(r)
    if t == F.TYPE_BYTES:
        return random_bytes(r)
    if t == F.TYPE_ENUM:
        if field.enum_type.full_name == "google.protobuf.NullValue":
            return 0
        known = [v.number for v in field.enum_type.values]
        if field.enum_type.is_closed:
            return r.choice(known)
        return r.choice(known + [77, -5, (1 << 31) - 1])
    raise ValueError(field.type)


def fill(r, message, depth, finite):
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds = r.choice([0, -62135596800, 253402300799, r.randint(-62135596800, 253402300799)])
        message.nanos = r.choice([0, 1, 1000, 500000000, 999999999, 10 * r.randrange(10**8)])
        return
    if name == "google.protobuf.Duration":
        sign = r.choice([1, -1])
        message.seconds = sign * r.choice([0, 1, 315576000000, r.randrange(10**9)])
        if abs(message.seconds) < 315576000000:
            message.nanos = sign * r.choice([0, 1, 1000, 500000000, 999999999])
        return
    if name == "google.protobuf.FieldMask":
        message.paths.extend(r.choice(["a", "foo_bar", "a.b_c.d", "x1"]) for _ in range(r.randrange(4)))
        return
    if name == "google.protobuf.Any":
        inner = r.choice(["fixture.Sparse", "google.protobuf.Duration", "google.protobuf.StringValue"])
        value = message_class(inner)()
        fill(r, value, depth + 1, finite)
        message.type_url = "type.googleapis.com/" + inner
        message.value = value.SerializeToString(deterministic=True)
        return
    if name == "google.protobuf.Value":
        kind = r.randrange(4 if depth > 4 else 6)
        if kind == 0:
            message.null_value = 0
        elif kind == 1:
            message.number_value = r.choice([0.0, 1.0, -2.5, 1e20])
        elif kind == 2:
            message.string_value = random_string(r)
        elif kind == 3:
            message.bool_value = r.random() < 0.5
        elif kind == 4:
            fill(r, message.struct_value, depth + 1, finite)
            message.struct_value.SetInParent()
        else:
            fill(r, message.list_value, depth + 1, finite)
            message.list_value.SetInParent()
        return
    extensions = pool.FindAllExtensions(message.DESCRIPTOR)
    for field in list(message.DESCRIPTOR.fields) + sorted(extensions, key=lambda e: e.number):
        if not field.is_required and r.random() < (0.5 if depth < 2 else 0.8):
            continue
        if field.message_type is not None and depth > 4:
            continue
        if field.is_extension:
            fill_extension(r, message, field, depth, finite)
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            target = getattr(message, field.name)
            for _ in range(r.choice([1, 2, 5])):
                k = random_scalar(r, key, finite)
                if value.message_type is not None:
                    fill(r, target[k], depth + 1, finite)
                else:
                    target[k] = random_scalar(r, value, finite)
        elif field.is_repeated:
            target = getattr(message, field.name)
            for _ in range(r.choice([1, 2, 9])):
                if field.message_type is not None:
                    fill(r, target.add(), depth + 1, finite)
                else:
                    target.append(random_scalar(r, field, finite))
        elif field.message_type is not None:
            value = getattr(message, field.name)
            value.SetInParent()
            fill(r, value, depth + 1, finite)
        else:
            setattr(message, field.name, random_scalar(r, field, finite))


def fill_extension(r, message, field, depth, finite):
    if not field.is_repeated and field.message_type is None:
        message.Extensions[field] = random_scalar(r, field, finite)
        return
    target = message.Extensions[field]
    if not field.is_repeated:
        target.SetInParent()
        fill(r, target, depth + 1, finite)
        return
    for _ in range(r.choice([1, 2, 5])):
        if field.message_type is not None:
            fill(r, target.add(), depth + 1, finite)
        else:
            target.append(random_scalar(r, field, finite))


def answer(operation, name, argument):
    if operation == b"F":
        # A file's descriptor.
        pool.AddSerializedFile(argument)
        return b""
    if operation in b"Ggn":
        # A random message from a seed; "g" without numbers JSON cannot hold, "n" without what
        # protobuf-c cannot.
        global plain
        plain = operation == b"n"
        message = message_class(name)()
        fill(random.Random(argument), message, 0, operation == b"g")
        return message.SerializeToString(deterministic=True)
    if operation == b"P":
        # Decoded and encoded again.
        message = message_class(name)()
        message.ParseFromString(argument)
        return message.SerializePartialToString(deterministic=True)
    if operation == b"J":
        message = message_class(name)()
        message.ParseFromString(argument)
        return json_format.MessageToJson(message, indent=None, descriptor_pool=pool).encode()
    if operation in b"Kk":
        message = message_class(name)()
        json_format.Parse(
            argument.decode(), message, ignore_unknown_fields=operation == b"k", descriptor_pool=pool)
        return message.SerializePartialToString(deterministic=True)
    if operation == b"T":
        message = message_class(name)()
        message.ParseFromString(argument)
        return text_format.MessageToString(
            message, descriptor_pool=pool, print_unknown_fields=True, as_utf8=True).encode()
    if operation == b"U":
        message = message_class(name)()
        text_format.Parse(argument, message, descriptor_pool=pool)
        return message.SerializePartialToString(deterministic=True)
    if operation in b"Mm":
        parts, position = [], 0
        while position < len(argument):
            size = struct.unpack_from("<I", argument, position)[0]
            parts.append(argument[position + 4:position + 4 + size])
            position += 4 + size
        origin, target, mask = message_class(name)(), message_class(name)(), FieldMask()
        for message, part in zip((origin, target, mask), parts):
            message.ParseFromString(part)
        replace = operation == b"m"
        mask.MergeMessage(origin, target, replace, replace)
        return target.SerializePartialToString(deterministic=True)
    raise ValueError(operation)


def main():
    while True:
        head = source.read(4)
        if len(head) < 4:
            return
        frame = source.read(struct.unpack("<I", head)[0])
        operation, position, parts = frame[:1], 1, []
        while position < len(frame):
            size = struct.unpack_from("<I", frame, position)[0]
            parts.append(frame[position + 4:position + 4 + size])
            position += 4 + size
        results = []
        for argument in parts[1:]:
            try:
                result, success = answer(operation, parts[0].decode(), argument), 1
            except Exception as error:  # the test judges it
                result, success = str(error).encode(errors="replace"), 0
            results.append(struct.pack("<BI", success, len(result)) + result)
        body = b"".join(results)
        sink.write(struct.pack("<I", len(body)) + body)
        sink.flush()


main()
