"""PyPI's library `transformers`, in a virtual environment beside the PyTorch that is installed.

To be imported before PyTorch by a program whose second argument is the build folder, which has the environment. Exit
status 77: PyTorch or PyPI are not to be had.
"""

import importlib.util
import os
import pathlib
import sys
import types

if importlib.util.find_spec("torch") is None:
    print("SKIPPED: python3-torch is not installed")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import pypi  # noqa: E402

if len(sys.argv) < 3:
    sys.exit(sys.modules["__main__"].__doc__.split("\n\n")[1])
# Debian's PyTorch is a version in front of the one that peft asks for by its number.
pypi.enter(pathlib.Path(sys.argv[2]).resolve(), "transformers", ["transformers==4.51.3", "psutil"],
           with_system_packages=True, alone=["peft==0.15.2", "accelerate==1.2.1"])

import torch  # noqa: E402


def stand_in_for_a_newer_torch():
    """The library imports names that Debian's PyTorch 1.13 lacks. Models on one CPU call the last two."""
    if hasattr(torch, "compiler"):
        return
    tensor = types.ModuleType("torch.distributed.tensor")
    for name in ("DTensor", "Placement", "Replicate", "Shard"):
        setattr(tensor, name, type(name, (), {}))
    sys.modules[tensor.__name__] = torch.distributed.tensor = tensor
    torch.float8_e4m3fn = torch.float8_e5m2 = object()
    torch.compiler = types.SimpleNamespace(disable=lambda **_: lambda function: function, is_compiling=lambda: False)
    named_parameters = torch.nn.Module.named_parameters

    def with_duplicates(self, prefix="", recurse=True, remove_duplicate=True):
        if remove_duplicate:
            return named_parameters(self, prefix, recurse)
        return ((f"{place}.{name}" if place else name, parameter) for place, module in self.named_modules(prefix=prefix)
                for name, parameter in module._parameters.items() if parameter is not None)

    load_state_dict = torch.nn.Module.load_state_dict

    def assigning(self, state_dict, strict=True, assign=False):
        if not assign:
            return load_state_dict(self, state_dict, strict)
        for name, value in state_dict.items():  # the module's own, one by one
            setattr(self, name, torch.nn.Parameter(value))

    torch.nn.Module.named_parameters, torch.nn.Module.load_state_dict = with_duplicates, assigning


stand_in_for_a_newer_torch()
os.environ["HF_HUB_OFFLINE"] = "1"  # everything is made here
import transformers  # noqa: E402

transformers.logging.set_verbosity_error()
