"""Rewrites .proto files of proto2 and proto3 in edition 2023, meaning the same.

    editions.py FILE... FOLDER

FOLDER/<name>_editions.proto gets what the syntax says by itself as features.
"""

import pathlib
import re
import sys

FEATURES = {
    "proto2": {
        "enum_type": "CLOSED",
        "repeated_field_encoding": "EXPANDED",
        "utf8_validation": "NONE",
        "json_format": "LEGACY_BEST_EFFORT",
    },
    "proto3": {"field_presence": "IMPLICIT"},
}


def rewrite(text: str) -> str:
    text = re.sub(r"//[^\n]*", "", text)
    syntax = re.search(r'syntax = "(proto[23])";', text)[1]
    options = "".join(
        f"option features.{name} = {value};\n" for name, value in FEATURES[syntax].items()
    )
    text = re.sub(r'syntax = "proto[23]";', 'edition = "2023";', text)
    text = re.sub(r"(?m)^(package [^;]*;)", rf"\1\n{options}", text)

    # A group is a message beside a field of its name in lower case.
    def group(match: re.Match) -> str:
        label, name, number = match[1], match[2], match[3]
        field = f"{name} {name.lower()} = {number} [features.message_encoding = DELIMITED];"
        label = "repeated " if label == "repeated" else ""
        return f"{label}{field}\nmessage {name} {{"

    text = re.sub(r"(\w+) group (\w+) = (\d+) \{", group, text)
    text = re.sub(r"\[packed = true\]", "[features.repeated_field_encoding = PACKED]", text)
    text = re.sub(r"\[packed = false\]", "[features.repeated_field_encoding = EXPANDED]", text)
    text = re.sub(
        r"\brequired ([^;\[]*);", r"\1 [features.field_presence = LEGACY_REQUIRED];", text
    )
    if syntax == "proto3":
        text = re.sub(
            r"\boptional ([^;\[]*);", r"\1 [features.field_presence = EXPLICIT];", text
        )
    return re.sub(r"\boptional (?=[\w.]+ \w+ =)", "", text)


folder = pathlib.Path(sys.argv[-1])
for name in sys.argv[1:-1]:
    path = pathlib.Path(name)
    (folder / f"{path.stem}_editions.proto").write_text(rewrite(path.read_text()))
