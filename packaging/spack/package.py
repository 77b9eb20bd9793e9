# SPDX-License-Identifier: BSD-3-Clause
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import (
    Executable,
    cache_extra_test_sources,
    conflicts,
    depends_on,
    find_libraries,
    join_path,
    license,
    requires,
    run_after,
    test_part,
    variant,
    version,
    when,
    working_dir,
)


class Stretto(CMakePackage):
    """Faster MPI collectives for programs that are not changed for it: a library that is preloaded
    in front of Open MPI, MPICH or Intel MPI, and a command that launches, measures and explains."""

    # `git archive` makes the file; `spack develop --path CHECKOUT stretto` needs none.
    url = f"file://{os.getcwd()}/stretto-0.2.0.tar.gz"
    manual_download = True

    license("BSD-3-Clause")
    version("0.2.0")

    variant("tool", default=True, description="The command, its modules, manual pages and completion")
    variant("openmpi", default=True, description="The preload library for Open MPI")
    variant("mpich", default=True, description="The preload library for MPICH and Intel MPI")
    variant("pmix", default=False, description="Answers PMIx_Get from the node's key-value store")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    # The libraries link to no MPI: headers are all that the build needs.
    depends_on("openmpi@4:", type=("build", "test"), when="+openmpi")
    depends_on("mpich@4:", type=("build", "test"), when="+mpich")
    depends_on("pmix@4:", type="build", when="+pmix")
    with when("+tool"):
        depends_on("python@3.10:", type=("build", "run"))
        depends_on("py-typer@0.12:", type=("build", "run"))
        depends_on("py-rich@13:", type=("build", "run"))
        depends_on("py-numpy@1.24:", type=("build", "run"))
        depends_on("py-matplotlib@3.6:", type=("build", "run"))
        depends_on("py-jinja2@3.1:", type=("build", "run"))
        depends_on("py-tomli@2:", type=("build", "run"), when="^python@:3.10")

    requires("%gcc@12:", "%clang@16:", policy="one_of", msg="Stretto is written in C++20")
    conflicts("platform=darwin")
    requires("target=x86_64:", "target=aarch64:", policy="one_of", msg="Stretto serves x86-64 and AArch64")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("STRETTO_TESTS", False),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),  # where `stretto install` puts the same files
            *(self.define(f"STRETTO_{mpi.upper()}_INCLUDE", self._headers(mpi)) for mpi in ("openmpi", "mpich")),
            self.define("STRETTO_PMIX_INCLUDE", self._headers("pmix")),
        ]

    def _headers(self, package):
        return self.spec[package].prefix.include if self.spec.satisfies(f"+{package}") else "OFF"

    @run_after("install")
    def install_tool(self):
        if not self.spec.satisfies("+tool"):
            return
        interpreter = self.spec["python"].command.path
        stretto = Executable(interpreter)
        source = join_path(self.stage.source_path, "python")
        stretto.add_default_env("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
        words = ["--prefix", self.prefix, "--native", self.builder.build_directory, "--python-packages", "none"]
        with working_dir(self.stage.source_path):
            stretto("-m", "stretto", "install", *words, "--python", interpreter, "--replace")

    @run_after("install")
    def keep_test_sources(self):
        cache_extra_test_sources(self, ["examples"])

    def setup_run_environment(self, env):
        env.set("STRETTO_ROOT", self.prefix)

    def test_preload(self):
        """a program gives the same result with the library and without, and calls are served"""
        for mpi in ("openmpi", "mpich"):
            if not self.spec.satisfies(f"+{mpi}"):
                continue
            with test_part(self, f"test_preload_{mpi}", purpose=f"a program on {mpi}"):
                source = join_path(self.test_suite.current_test_cache_dir, "examples", "sample_sort.c")
                tools = self.spec[mpi].prefix.bin
                Executable(join_path(tools, "mpicc"))("-O2", source, "-o", f"sort-{mpi}")
                launch = Executable(join_path(tools, "mpiexec"))
                library = find_libraries(f"libstretto-{mpi}", self.prefix, recursive=True)[0]
                plain = launch("-n", "2", f"./sort-{mpi}", output=str)
                served = launch(
                    "-n", "2", "env", f"LD_PRELOAD={library}", "STRETTO_STATS=text", f"./sort-{mpi}",
                    output=str, error=str,
                )  # fmt: skip
                assert "communicator 0" in served, "the library is not active in the ranks"
                checksum = next(line for line in plain.splitlines() if "checksum" in line)
                assert checksum in served, "the result differs"
