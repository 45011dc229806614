"""File names and whose file it is."""

from __future__ import annotations

import copy
import os

import dynacheck
import pytest
import torch
from dynacheck import places

ROOT = os.path.abspath(os.sep + "project")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (os.path.join(ROOT, "src", "model.py"), "src/model.py"),
        (
            os.path.join(ROOT, ".venv", "lib", "site-packages", "transformers", "bert.py"),
            "transformers/bert.py",
        ),
        (copy.__file__, "copy.py"),
        (os.path.abspath(os.sep + os.path.join("elsewhere", "x.py")), "x.py"),
        ("<string>", "<string>"),
    ],
)
def test_display_name(file, name):
    assert places.display_name(file, ROOT) == name


@pytest.mark.parametrize(
    ("file", "library"),
    [
        (torch.nn.modules.module.__file__, True),
        (copy.__file__, True),
        (dynacheck.__file__, True),
        (pytest.__file__, False),
        (__file__, False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", True),
    ],
)
def test_is_library(file, library):
    assert places.is_library(file) is library


def test_belongs_to(tmp_path):
    (tmp_path / "pkg" / "sub").mkdir(parents=True)
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "sub" / "__init__.py").write_text("")
    (tmp_path / "plain").mkdir()
    file = str(tmp_path / "pkg" / "sub" / "a.py")
    assert places.package_of(file) == "pkg.sub.a"
    assert places.belongs_to(file, "pkg")
    assert places.belongs_to(file, "pkg.sub")
    assert not places.belongs_to(file, "pk")
    assert places.belongs_to(str(tmp_path / "plain" / "b.py"), "plain")
