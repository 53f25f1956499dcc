"""Which coordinator a client calls: arguments, the environment, the profile, in this order."""
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import support
from stagecoach import _profile
from stagecoach._profile import Settings, Target

import stagecoach

PROFILE = """# Clusters of `stagecoach`; `stagecoach config` writes this file anew.
current: lab
clusters:
  lab:
    coordinator: lab:8001  # where it is
    certs: certs/ann
  shared:
    coordinator: 'shared:8001'
    ca: /etc/ca.pem
    token_file: token
  "odd":
    coordinator: plain:8001
""".replace('"odd"', "odd")


class Profiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.file = self.home / ".config" / "stagecoach" / "config.yaml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(PROFILE)
        self.token = self.file.parent / "token"
        self.token.write_text("secret\n")
        self.token.chmod(0o600)

    def find(self, environment=(), **given):
        if set(given) - {"address", "cluster"}:
            given["use_tls"] = True
        return _profile.find_target(Settings(**given), {"HOME": str(self.home), **dict(environment)})

    def refused(self, pattern, environment=(), **given):
        with self.assertRaisesRegex(stagecoach.ConfigurationError, pattern):
            self.find(environment, **given)

    def test_the_order_of_the_sources(self):
        certs = self.file.parent / "certs" / "ann"
        lab = Target("lab:8001", str(certs / "ca.pem"), str(certs / "tls.crt"), str(certs / "tls.key"))
        self.assertEqual(self.find(), lab)
        self.assertEqual(self.find({"STAGECOACH_CLUSTER": "odd"}), Target("plain:8001"))
        self.assertEqual(self.find({"STAGECOACH_CLUSTER": "odd"}, cluster="lab"), lab)
        self.assertEqual(self.find({"STAGECOACH_ADDRESS": "there:1"}), Target("there:1"), "an address is no cluster's")
        self.assertEqual(self.find({"STAGECOACH_ADDRESS": "there:1"}, cluster="lab"), lab)
        self.assertEqual(self.find({"STAGECOACH_ADDRESS": "there:1"}, address="here:2"), Target("here:2"))
        self.assertEqual(self.find(cluster="shared"), Target("shared:8001", "/etc/ca.pem", token="secret"))
        self.assertEqual(self.find(cluster="shared", cert="c", key="k"), Target("shared:8001", "/etc/ca.pem", "c", "k"))
        self.assertEqual(self.find(token="mine"), Target("lab:8001", str(certs / "ca.pem"), token="mine"))
        self.assertEqual(self.find({"STAGECOACH_ADDRESS": "a:1", "STAGECOACH_TLS": "1", "STAGECOACH_TLS_CA": "x",
                                    "STAGECOACH_TOKEN_FILE": str(self.token)}), Target("a:1", "x", token="secret"))

    def test_the_place_of_the_profile(self):
        other = self.home / "other.yaml"
        other.write_text("clusters: \n  b:\n    coordinator: b:1\n  c:\n    coordinator: c:1\n")
        self.assertEqual(self.find({"STAGECOACH_CONFIG": str(other)}), Target("localhost:8001"), "no cluster is current")
        self.assertEqual(self.find({"STAGECOACH_CONFIG": str(other)}, cluster="b"), Target("b:1"))
        self.assertEqual(self.find({"XDG_CONFIG_HOME": str(self.home / "nothing")}), Target("localhost:8001"))
        self.assertEqual(self.find({"HOME": ""}), Target("localhost:8001"))
        self.assertEqual(self.find({"XDG_CONFIG_HOME": str(self.home / ".config"), "HOME": ""}).address, "lab:8001")

    def test_the_only_cluster_needs_no_choice(self):
        self.file.write_text("clusters:\n  a:\n    coordinator: only:8001\n")
        self.assertEqual(self.find().address, "only:8001")

    def test_a_profile_that_others_may_write_is_refused(self):
        self.file.chmod(0o666)
        self.refused(f"chmod go-w {re.escape(str(self.file))}")

    def test_what_does_not_fit_is_refused(self):
        self.refused(r"cluster lba: .*config.yaml has no such cluster \(it has: lab, odd, shared\)", cluster="lba")
        self.refused("are both set; unset one", {"STAGECOACH_CLUSTER": "lab", "STAGECOACH_ADDRESS": "a:1"})
        self.refused("STAGECOACH_TLS=maybe: want true or false", {"STAGECOACH_TLS": "maybe"})
        self.refused("key is missing beside cert", address="a:1", ca="c", cert="c")
        self.refused("ca is missing", address="a:1", token="t")
        self.refused("ca stands alone", address="a:1", ca="c")
        self.refused("a token stands in place of a certificate", address="a:1", ca="c", cert="c", key="k", token="t")
        self.refused("without TLS the token could be read", {"STAGECOACH_ADDRESS": "a:1", "STAGECOACH_TOKEN_FILE": "t"})
        self.token.chmod(0o644)
        self.refused("token has the rights 0644|token: has the rights 0644", cluster="shared")
        self.file.write_text("clusters:\n  lab:\n    coordinator: lab:8001\n    keys: x\n")
        self.refused(r"clusters.lab.keys: unknown field; known are coordinator, certs, ca", cluster="lab")
        self.file.write_text("clusters:\n  lab:\n    coordinator: lab:8001\n    certs: x\n    ca: y\n")
        self.refused(r"clusters.lab.certs: names all of ca.pem", cluster="lab")
        self.file.write_text("clusters:\n  lab:\n    ca: y\n")
        self.refused(r"clusters.lab: coordinator is missing", cluster="lab")

    def test_plain_blocks_are_read_as_yaml_reads_them(self):
        import yaml
        for text in (PROFILE, "", "# nothing\n", "clusters:\n", "---\na:\n    b:\n      c: d\n    e: f\ng: h:1\n",
                     'a: "x\\ny"\nb: \'z\'  # it\nc: /p-q_r.s\n'):
            self.assertEqual(_profile.read_plain_blocks(text, "f") or None,
                             _nulls(yaml.load(text, Loader=yaml.BaseLoader)), text)

    def test_without_pyyaml_the_profile_is_read_all_the_same(self):
        wanted = [self.find(cluster=name) for name in ("lab", "shared", "odd")]
        with unittest.mock.patch.dict("sys.modules", {"yaml": None}):
            self.assertEqual([self.find(cluster=name) for name in ("lab", "shared", "odd")], wanted)

    def test_other_forms_of_yaml_name_the_line_and_the_remedy(self):
        for line in ("  lab: {coordinator: a}", "  - lab", "  lab: &x y", "\tlab: x", "  lab: |", " lab", "  lab: 'a", '  "l": x',
                     "  lab: [a]", "  lab: a: b", '  lab: "\\x41"'):
            with self.subTest(line):
                with self.assertRaises(stagecoach.ConfigurationError) as caught:
                    _profile.read_plain_blocks(f"current: lab\nclusters:\n{line}\n", "f")
                self.assertEqual(str(caught.exception), f'f:3: "{line.strip()}" is not a plain `name: value`, and only such '
                                 "lines are read without PyYAML: pip install pyyaml")
        for text in ("a:\n  b: c\n d: e\n", "a: b\n  c: d\n", "  a: b\nc: d\n"):
            with self.assertRaisesRegex(stagecoach.ConfigurationError, "is not a plain"):
                _profile.read_plain_blocks(text, "f")
        with self.assertRaisesRegex(stagecoach.ConfigurationError, "f:2: a: given twice"):
            _profile.read_plain_blocks("a: b\na: c\n", "f")


def _nulls(value):
    """BaseLoader gives an empty text for no value."""
    if isinstance(value, dict):
        return {name: _nulls(one) for name, one in value.items()}
    return value or None


if __name__ == "__main__":
    support.main()
