# SPDX-License-Identifier: BSD-3-Clause
"""What other package managers take: packaging/ is of this version, and their tools can read it."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stretto

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
EASYCONFIG = next(PACKAGING.glob("easybuild/*.eb"))
PARSE_EASYCONFIG = """
import sys
from easybuild.tools.options import set_up_configuration
set_up_configuration(args=sys.argv[2:], silent=True)
from easybuild.framework.easyconfig.easyconfig import EasyConfig, get_easyblock_class
config = EasyConfig(sys.argv[1])
assert get_easyblock_class(config["easyblock"]).__name__ == "CMakeNinja"
with config.disable_templating():
    print(config["name"], config["version"], len(config["sanity_check_commands"]))
"""


def test_all_are_of_this_version() -> None:
    version = stretto.__version__
    assert re.match(rf"stretto \({re.escape(version)}-\d+\) ", (PACKAGING / "debian/changelog").read_text())
    assert EASYCONFIG.name.startswith(f"stretto-{version}-") and f"version = '{version}'" in EASYCONFIG.read_text()
    assert f'version: "{version}"\n' in (PACKAGING / "conda/recipe.yaml").read_text()
    assert f'version("{version}")' in (PACKAGING / "spack/package.py").read_text()


def test_python_packages_are_those_of_the_project() -> None:
    project = (PACKAGING.parent / "pyproject.toml").read_text()
    wanted = set(re.findall(r'"(\w+)>=([\d.]+)', re.search(r"^dependencies = (.*)$", project, re.MULTILINE)[1]))
    spack = re.findall(r'depends_on\("py-(\w+)@([\d.]+):"', (PACKAGING / "spack/package.py").read_text())
    assert set(spack) == wanted
    conda = re.findall(r"- (\w+?)(?:-base)? >=([\d.]+)", (PACKAGING / "conda/recipe.yaml").read_text())
    assert wanted - {("tomli", "2")} <= set(conda)  # conda-forge has newer versions of Python only


def test_easybuild_reads_its_recipe(tmp_path: Path) -> None:
    if not importlib.util.find_spec("easybuild"):
        pytest.skip("needs EasyBuild: pip install easybuild-framework easybuild-easyblocks")
    command = next(Path("/usr/lib").glob("*/modulecmd.tcl"), None)
    if not command:
        pytest.skip("EasyBuild needs environment modules")
    words = [f"--prefix={tmp_path}", "--modules-tool=EnvironmentModules", "--module-syntax=Tcl"]
    words += ["--allow-use-as-root-and-accept-consequences"] if os.geteuid() == 0 else []
    environment = {**os.environ, "MODULES_CMD": str(command), "HOME": str(tmp_path)}
    line = [sys.executable, "-c", PARSE_EASYCONFIG, EASYCONFIG, *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, env=environment)
    assert done.stdout.split() == ["stretto", stretto.__version__, "3"], done.stdout + done.stderr


def test_rattler_build_renders_its_recipe() -> None:
    rattler = pytest.importorskip("rattler_build", reason="needs rattler-build: pip install py-rattler-build")
    recipe = rattler.Stage0Recipe.from_file(str(PACKAGING / "conda/recipe.yaml"))
    variants = rattler.VariantConfig.from_file(str(PACKAGING / "conda/variants.yaml"))
    made = [each.recipe.to_dict() for each in recipe.render(variants)]
    assert {each["requirements"]["run"][-1] for each in made} == {"openmpi", "mpich"}
    assert all("sysroot_linux-64 2.28.*" in each["requirements"]["build"] for each in made)


def test_spack_reads_its_recipe(tmp_path: Path) -> None:
    recipe = PACKAGING / "spack/package.py"
    tree = ast.parse(recipe.read_text())
    (package,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert package.name == "Stretto" and "test_preload" in {getattr(node, "name", "") for node in package.body}
    if not shutil.which("spack"):
        pytest.skip("needs Spack")
    folder = tmp_path / "packages/stretto"
    folder.mkdir(parents=True)
    shutil.copy(recipe, folder)
    (tmp_path / "repo.yaml").write_text("repo:\n  namespace: stretto_test\n  api: v2.0\n")
    line = ["spack", "-C", str(tmp_path), "--config", f"repos:[{tmp_path}]", "info", "stretto"]
    said = subprocess.run(line, capture_output=True, text=True, timeout=250)
    assert said.returncode == 0 and "mpich" in said.stdout, said.stderr


def test_debian_reads_its_files() -> None:
    debian = PACKAGING / "debian"
    names = re.findall(r"^Package: (\S+)$", (debian / "control").read_text(), re.MULTILINE)
    assert {path.name for path in debian.glob("*.install")} <= {f"{name}.install" for name in names}
    if not shutil.which("dpkg-parsechangelog"):
        pytest.skip("needs dpkg-dev")
    line = ["dpkg-parsechangelog", "-l", debian / "changelog", "-S", "Version"]
    said = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith(f"{stretto.__version__}-") and not said.stderr
