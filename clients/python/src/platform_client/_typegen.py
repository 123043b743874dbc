"""Makes a module of `TypedDict`s of the tables that `/swagger/json` describes."""

from __future__ import annotations

import keyword
import re
from typing import Any, Dict, List, Mapping, Tuple

_REFERENCE = "#/components/schemas/"
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = '''"""Records of the tables of {url}. Made by `python -m platform_client types`; run it again when the config changes."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

'''


def types_of(document: Mapping[str, Any], url: str) -> str:
    """Returns the text of a module. Errors: `LookupError` if the document has no tables."""
    schemas: Mapping[str, Mapping[str, Any]] = document["components"]["schemas"]
    tables = [name for name in schemas if "." in name]
    if not tables:
        raise LookupError(
            "The server does not show its tables: set api.schemaEndpoint in its config, and give a service key if it is "
            '"authenticated"'
        )
    helpers = sorted(name for name in schemas if name.startswith("Field"))
    writer = _Writer()
    for name in [*helpers, *tables]:
        writer.add(class_of(name), schemas[name])
    return _HEAD.format(url=url) + "\n" + "\n\n".join(writer.classes) + "\n"


def class_of(name: str) -> str:
    """Returns the name of a class: `SharedFilmsInsert` of `shared.films.insert`."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    return "".join(word[0].upper() + word[1:] for word in words) or "Record"


class _Writer:
    """Collects classes; those of members come before the class that has them."""

    def __init__(self) -> None:
        self.classes: List[str] = []
        self._names: Dict[str, int] = {}

    def add(self, name: str, schema: Mapping[str, Any]) -> str:
        """Writes an object as a class, and returns its name."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        unique = name if count == 0 else f"{name}{count + 1}"
        required = set(schema.get("required", []))
        members = [
            (member, self.text(f"{name}{class_of(member)}", part), member in required)
            for member, part in schema.get("properties", {}).items()
        ]
        self.classes.append(_class_text(unique, members))
        return unique

    def text(self, name: str, schema: Any) -> str:
        """Returns the type of a schema; objects with members become classes of this name."""
        if not isinstance(schema, Mapping) or not schema:
            return "Any"
        if "$ref" in schema:
            return class_of(str(schema["$ref"])[len(_REFERENCE) :])
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return _literal(schema["enum"])
        if "anyOf" in schema:
            return _union([self.text(name, part) for part in schema["anyOf"]])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self.text(name, {**schema, "type": one}) for one in kind])
        if kind == "array":
            return f"List[{self.text(name, schema.get('items'))}]"
        if kind == "object":
            if schema.get("properties"):
                return self.add(name, schema)
            return "Dict[str, Any]"
        return _SIMPLE.get(str(kind), "Any")


def _literal(values: List[Any]) -> str:
    named = [value for value in values if value is not None]
    text = f"Literal[{', '.join(repr(value) for value in named)}]" if all(_is_literal(v) for v in named) else "Any"
    return f"Optional[{text}]" if len(named) < len(values) else text


def _is_literal(value: Any) -> bool:
    return isinstance(value, (str, int, bool))


def _union(parts: List[str]) -> str:
    different = list(dict.fromkeys(parts))
    if "Any" in different:
        return "Any"
    values = [part for part in different if part != "None"]
    text = values[0] if len(values) == 1 else f"Union[{', '.join(values)}]" if values else "None"
    return f"Optional[{text}]" if values and len(values) < len(different) else text


def _class_text(name: str, members: List[Tuple[str, str, bool]]) -> str:
    if not members:
        return f"class {name}(TypedDict):\n    pass\n"
    required = [member for member in members if member[2]]
    others = [member for member in members if not member[2]]
    if all(member.isidentifier() and not keyword.iskeyword(member) for member, _, _ in members):
        if not others:
            return f"class {name}(TypedDict):\n{_body(required)}"
        if not required:
            return f"class {name}(TypedDict, total=False):\n{_body(others)}"
        base = f"class _{name}(TypedDict):\n{_body(required)}"
        return f"{base}\n\nclass {name}(_{name}, total=False):\n{_body(others)}"
    # Names that are no identifiers: types are texts, since this form is evaluated when the module is loaded.
    if not required or not others:
        return f"{name} = TypedDict({name!r}, {_pairs(members)}, total={not others})\n"
    base = f"_{name} = TypedDict('_{name}', {_pairs(required)})"
    rest = f"_{name}Others = TypedDict('_{name}Others', {_pairs(others)}, total=False)"
    return f"{base}\n{rest}\n\n\nclass {name}(_{name}, _{name}Others):\n    pass\n"


def _body(members: List[Tuple[str, str, bool]]) -> str:
    return "".join(f"    {member}: {text}\n" for member, text, _ in members)


def _pairs(members: List[Tuple[str, str, bool]]) -> str:
    return "{" + ", ".join(f"{member!r}: {text!r}" for member, text, _ in members) + "}"
