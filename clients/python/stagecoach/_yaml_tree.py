"""YAML as dicts, lists and texts: no scalar is guessed, as `name: no` is a text. Needs PyYAML."""
from __future__ import annotations

from typing import Any, Dict, Set, Tuple

from .errors import InvalidJob


def parse(text: str, place: str) -> Tuple[Any, Dict[str, str]]:
    """The value, and "file:line:column" of each field by its path. Refuses tags, aliases and fields given twice."""
    try:
        import yaml
    except ImportError:
        raise InvalidJob(f"{place}: reading YAML needs PyYAML: pip install pyyaml, or write the job as JSON or as a "
                         "dict") from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise InvalidJob(f"{_at(place, error.problem_mark)}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidJob(f"{place}: not valid YAML: {error}") from None
    if root is None:
        raise InvalidJob(f"{place}: is empty; a job begins with 'name: ...'")
    tree = _Tree(place, yaml)
    return tree.value(root, ""), tree.positions


def _at(place: str, mark: Any) -> str:
    return place if mark is None else f"{place}:{mark.line + 1}:{mark.column + 1}"


class _Tree:
    def __init__(self, place: str, yaml: Any) -> None:
        self.positions: Dict[str, str] = {}
        self._place = place
        self._yaml = yaml
        self._seen: Set[int] = set()

    def value(self, node: Any, path: str) -> Any:
        where = _at(self._place, node.start_mark)
        if id(node) in self._seen:
            raise InvalidJob(f"{path}: an alias (*name) of what stands at {where} is not taken; write the value out")
        self._seen.add(id(node))
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise InvalidJob(f"{where}: tags ({node.tag}) are not taken")
        if path.endswith("]"):
            self.positions[path] = where
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(item, f"{path}[{i}]") for i, item in enumerate(node.value)]
        if not isinstance(node, self._yaml.MappingNode):
            return None if node.tag.endswith(":null") else node.value
        fields: Dict[str, Any] = {}
        for name_node, node_of_value in node.value:
            name, where = name_node.value, _at(self._place, name_node.start_mark)
            if not isinstance(name, str) or not name:
                raise InvalidJob(f"{where}: a field name must be a plain word")
            if name in fields:
                raise InvalidJob(f"{where}: {name}: given twice; keep one")
            here = f"{path}.{name}" if path else name
            self.positions[here] = where
            fields[name] = self.value(node_of_value, here)
        return fields
