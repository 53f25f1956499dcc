"""Which coordinator, and with which certificates: from arguments, the environment and the profile of `stagecoach`.

The profile is ~/.config/stagecoach/config.yaml, below $XDG_CONFIG_HOME, or the file of $STAGECOACH_CONFIG:

    current: lab
    clusters:
      lab:
        coordinator: lab.example:8001
        certs: certs/ann        # a folder with ca.pem, tls.crt and tls.key
      shared:
        coordinator: shared.example:8001
        ca: shared.pem          # with cert and key, or with token_file
        token_file: token

A relative path starts at the profile's folder. Without certs or ca there is no TLS. The rules are those of
services/cli/profile.
"""
from __future__ import annotations

import json
import os
import pathlib
import re
import stat
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional

from .errors import ConfigurationError

DEFAULT_ADDRESS = "localhost:8001"
_MOST_BYTES = 1 << 16
_MOST_TOKEN_BYTES = 4096
_FIELDS = ("coordinator", "certs", "ca", "cert", "key", "token_file")


@dataclass(frozen=True)
class Target:
    """A coordinator. ca, cert and key are paths of PEM files; a token stands in place of cert and key."""

    address: str
    ca: Optional[str] = None
    cert: Optional[str] = None
    key: Optional[str] = None
    token: Optional[str] = None

    @property
    def uses_tls(self) -> bool:
        return self.ca is not None


@dataclass(frozen=True)
class Settings:
    """What one source says: the arguments, the environment, or a cluster of the profile."""

    address: Optional[str] = None
    cluster: Optional[str] = None
    use_tls: Optional[bool] = None
    ca: Optional[str] = None
    cert: Optional[str] = None
    key: Optional[str] = None
    token: Optional[str] = None
    token_file: Optional[str] = None


def find_target(given: Settings, environment: Mapping[str, str] = os.environ) -> Target:
    """The coordinator to call, from the caller's arguments, the environment and the profile, the first first.

    A cluster is that of the arguments, of $STAGECOACH_CLUSTER, or the profile's current one. An address stands in place of
    a cluster. Variables do not count beside a cluster of the arguments. A certificate hides a token of a later source, and
    the other way round.
    """
    variables = _variables(environment)
    by_variable = not given.cluster and not given.address and bool(variables.cluster)
    if by_variable and variables.address:
        raise ConfigurationError(f"STAGECOACH_CLUSTER={variables.cluster} and STAGECOACH_ADDRESS={variables.address} are "
                                 "both set; unset one, or give cluster or address")
    has_address = bool(given.address or (not given.cluster and variables.address))
    sources = [given] if given.cluster else [given, variables]
    if given.cluster or by_variable or not has_address:
        cluster = _cluster_of_profile(given.cluster or (variables.cluster if by_variable else None), environment)
        sources += [] if cluster is None else [cluster]
    return _merge(sources)


def _variables(environment: Mapping[str, str]) -> Settings:
    def value(name: str) -> Optional[str]:
        return environment.get(f"STAGECOACH_{name}") or None
    tls = value("TLS")
    if tls is not None and tls.lower() not in ("1", "true", "yes", "0", "false", "no"):
        raise ConfigurationError(f"STAGECOACH_TLS={tls}: want true or false")
    return Settings(address=value("ADDRESS"), cluster=value("CLUSTER"),
                    use_tls=None if tls is None else tls.lower() in ("1", "true", "yes"),
                    ca=value("TLS_CA"), cert=value("TLS_CERT"), key=value("TLS_KEY"), token_file=value("TOKEN_FILE"))


def _merge(sources: List[Settings]) -> Target:
    merged = Settings()
    for source in sources:
        has_certificate = bool(merged.cert or merged.key)
        has_token = bool(merged.token or merged.token_file)
        merged = replace(merged, address=merged.address or source.address, ca=merged.ca or source.ca,
                         use_tls=source.use_tls if merged.use_tls is None else merged.use_tls)
        if not has_certificate and not has_token:
            merged = replace(merged, token=source.token, token_file=source.token_file)
        if not has_token:
            merged = replace(merged, cert=merged.cert or source.cert, key=merged.key or source.key)
    address = merged.address or DEFAULT_ADDRESS
    if not merged.use_tls:
        if merged.token or merged.token_file:
            raise ConfigurationError(f"{address}: without TLS the token could be read on the way; give ca")
        return Target(address)
    _check_tls(merged, address)
    token = _read_token(merged.token_file) if merged.token is None and merged.token_file else merged.token
    return Target(address, merged.ca, merged.cert, merged.key, token)


def _check_tls(settings: Settings, place: str) -> None:
    has_token = bool(settings.token or settings.token_file)
    if settings.token and settings.token_file:
        raise ConfigurationError(f"{place}: token and token_file are both given; leave out one")
    if (settings.cert is None) != (settings.key is None):
        missing, other = ("cert", "key") if settings.cert is None else ("key", "cert")
        raise ConfigurationError(f"{place}: {missing} is missing beside {other}")
    if settings.cert and has_token:
        raise ConfigurationError(f"{place}: a token stands in place of a certificate; leave out cert and key, or the token")
    if settings.ca is None:
        raise ConfigurationError(f"{place}: ca is missing; name the authority's certificate, ca.pem")
    if not settings.cert and not has_token:
        raise ConfigurationError(f"{place}: ca stands alone; give cert and key, or a token, too")


def _read_token(path: str) -> str:
    try:
        text = pathlib.Path(path).read_bytes()[:_MOST_TOKEN_BYTES + 1].decode("ascii", "replace")
    except OSError as error:
        raise ConfigurationError(f"token_file {path}: {error.strerror}") from None
    token = text.strip()
    if not re.fullmatch(r"[!-~]+", token) or len(text) > _MOST_TOKEN_BYTES:
        raise ConfigurationError(f"token_file {path}: want the token alone, one word of letters, digits and signs")
    return token


def _profile_path(environment: Mapping[str, str]) -> Optional[pathlib.Path]:
    """Where the profile is; None: the environment names no place for one."""
    if environment.get("STAGECOACH_CONFIG"):
        return pathlib.Path(environment["STAGECOACH_CONFIG"]).absolute()
    base = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # XDG's rule: a relative one does not count
        home = environment.get("HOME", "")
        base = os.path.join(home, ".config") if os.path.isabs(home) else ""
    return pathlib.Path(base) / "stagecoach" / "config.yaml" if base else None


def _cluster_of_profile(name: Optional[str], environment: Mapping[str, str]) -> Optional[Settings]:
    """The cluster of that name, else the current one, else the only one; None if there is none of these."""
    path = _profile_path(environment)
    profile = {} if path is None else _read_profile(path)
    for field in profile:
        if field not in ("current", "clusters"):
            raise ConfigurationError(f"{path}: {field}: unknown field; known are current, clusters")
    clusters = _mapping(profile.get("clusters"), "clusters", path)
    wanted = name or profile.get("current") or (next(iter(clusters)) if len(clusters) == 1 else None)
    if not wanted:
        return None
    if wanted not in clusters:
        known = ", ".join(sorted(clusters)) or "none"
        raise ConfigurationError(f"cluster {wanted}: {path or 'no profile'} has no such cluster (it has: {known}); add it "
                                 "with `stagecoach config set`")
    assert path is not None
    return _read_cluster(_mapping(clusters[wanted], f"clusters.{wanted}", path), f"{path}: clusters.{wanted}", path.parent)


def _read_profile(path: pathlib.Path) -> Dict[str, Any]:
    try:
        if path == pathlib.Path("/dev/null"):
            return {}
        if path.is_dir():
            raise ConfigurationError(f"{path}: is a folder; a profile is a YAML file")
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o022:
                raise ConfigurationError(f"{path}: others may write it, and so say where tokens go: chmod go-w {path}")
            text = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        if isinstance(error, PermissionError) and os.access(path.parent, os.X_OK):
            raise ConfigurationError(f"{path}: {error.strerror}") from None
        return {}
    if len(text) > _MOST_BYTES:
        raise ConfigurationError(f"{path}: is larger than {_MOST_BYTES} bytes, the limit of a profile")
    return _read_yaml(text.decode("utf-8", "replace"), path)


def _read_cluster(fields: Dict[str, Any], place: str, folder: pathlib.Path) -> Settings:
    values: Dict[str, str] = {}
    for field, value in fields.items():
        if field not in _FIELDS:
            raise ConfigurationError(f"{place}.{field}: unknown field; known are {', '.join(_FIELDS)}")
        if not isinstance(value, (str, int, float)) or value == "":
            raise ConfigurationError(f"{place}.{field}: want a text that is not empty")
        values[field] = str(value) if field == "coordinator" else os.path.normpath(folder / str(value))
    if "coordinator" not in values:
        raise ConfigurationError(f"{place}: coordinator is missing; want HOST:PORT")
    certs = values.pop("certs", None)
    if certs is not None:
        if set(values) != {"coordinator"}:
            raise ConfigurationError(f"{place}.certs: names all of ca.pem, tls.crt and tls.key; leave out certs, or ca, "
                                     "cert, key and token_file")
        values.update(ca=os.path.join(certs, "ca.pem"), cert=os.path.join(certs, "tls.crt"),
                      key=os.path.join(certs, "tls.key"))
    settings = Settings(address=values["coordinator"], use_tls="ca" in values, ca=values.get("ca"), cert=values.get("cert"),
                        key=values.get("key"), token_file=values.get("token_file"))
    if len(values) > 1:
        _check_tls(settings, place)
    if settings.token_file:
        _check_rights(settings.token_file, place)
    return settings


def _check_rights(token_file: str, place: str) -> None:
    try:
        rights = stat.S_IMODE(os.stat(token_file).st_mode)
    except OSError as error:
        raise ConfigurationError(f"{place}.token_file: {token_file}: {error.strerror}") from None
    if rights & 0o077:
        raise ConfigurationError(f"{place}.token_file: {token_file}: has the rights {rights:04o}, so others may use the "
                                 f"token: chmod 0600 {token_file}, and have a new token made")


def _mapping(value: Any, place: str, path: Optional[pathlib.Path]) -> Dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path}: {place}: want a group of fields")
    return {str(name): one for name, one in value.items()}


def _read_yaml(text: str, path: pathlib.Path) -> Dict[str, Any]:
    try:
        import yaml
    except ImportError:
        return read_plain_blocks(text, str(path))
    try:
        return _mapping(yaml.load(text, Loader=yaml.BaseLoader), "the profile", path)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: not valid YAML: {error}") from None


_LINE = re.compile(r"(?P<indent> *)(?P<name>[A-Za-z0-9_.-]+):(?:[ ]+(?P<value>.*))?")
_QUOTED = re.compile(r"('(?P<single>[^']*)'|(?P<double>\"([^\"\\]|\\[^x])*\"))(\s+#.*)?")
_NOT_PLAIN = "&*!|>%@`[]{},#?-\"'"


def read_plain_blocks(text: str, path: str) -> Dict[str, Any]:
    """Nested groups of `name: value` with indents, which is what `stagecoach` writes; without PyYAML nothing else is read.

    Values are texts. Comments are taken. The error names the line, and PyYAML as the remedy.
    """
    root: Dict[str, Any] = {}
    # The open groups, outermost first, each with the indent of its fields: -1 until its first field is read.
    groups: List[List[Any]] = [[0, root]]
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#") or (number == 1 and stripped == "---"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise _not_plain(path, number, stripped)
        indent = len(match["indent"])
        if groups[-1][0] < 0 and indent > groups[-2][0]:
            groups[-1][0] = indent
        while groups and groups[-1][0] != indent:
            groups.pop()
            if not groups or 0 <= groups[-1][0] < indent:
                raise _not_plain(path, number, stripped)
        fields = groups[-1][1]
        if match["name"] in fields:
            raise ConfigurationError(f"{path}:{number}: {match['name']}: given twice; keep one")
        value = (match["value"] or "").strip()
        if not value or value.startswith("#"):
            fields[match["name"]] = {}
            groups.append([-1, fields[match["name"]]])
        else:
            fields[match["name"]] = _scalar(value, path, number, stripped)
    return _without_empty(root)


def _scalar(value: str, path: str, number: int, line: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    if quoted is not None:
        try:  # in double quotes `stagecoach` writes a text as JSON does
            return quoted["single"] if quoted["single"] is not None else str(json.loads(quoted["double"]))
        except ValueError:
            raise _not_plain(path, number, line) from None
    value = re.sub(r"\s+#.*", "", value)
    if value[0] in _NOT_PLAIN or re.search(r":(\s|$)", value):
        raise _not_plain(path, number, line)
    return value


def _not_plain(path: str, number: int, line: str) -> ConfigurationError:
    return ConfigurationError(f"{path}:{number}: \"{line}\" is not a plain `name: value`, and only such lines are "
                              "read without PyYAML: pip install pyyaml")


def _without_empty(fields: Dict[str, Any]) -> Dict[str, Any]:
    """A group without fields is no value, as in YAML."""
    return {name: (_without_empty(value) or None) if isinstance(value, dict) else value for name, value in fields.items()}
