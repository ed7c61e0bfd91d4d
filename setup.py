"""Compiles the kernels. All else stands in pyproject.toml.

``ODDSLIP_BUILD=checked`` builds kernels that check every index, under the address sanitizer, in a
folder of their own (see ``make sanitize``).
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, PlatformError

CHECKED = os.environ.get("ODDSLIP_BUILD") == "checked"
BUILD = Path("build/checked" if CHECKED else "build")
KERNELS = Path("src/oddslip/kernels")
PACKAGE = "oddslip.kernels"
SHARED = f"{PACKAGE}._shared"  # what Cython would otherwise repeat in every module

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "freethreading_compatible": True,
}

# No flag here changes a result: nothing is reordered, and a * b + c is rounded twice on every
# processor. Without the two about error numbers and traps, loops with a branch stay scalar.
UNIX = [
    "-O3", "-funroll-loops", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-g0",
]  # fmt: skip
UNIX_CHECKED = ["-O1", "-g", "-ffp-contract=off", "-fno-omit-frame-pointer", "-fsanitize=address"]
MSVC = ["/O2", "/fp:precise"]
FOR_AVX2 = {"unix": ["-mavx2", "-mfma", "-mbmi", "-mbmi2"], "msvc": ["/arch:AVX2"]}
OF_ONE_KERNEL = {
    # Exponentials and logarithms are long chains of a * b + c, a third faster in one instruction
    # each. They feed sums that fits refine until they hold, so here alone a last digit may differ.
    **{name: ["-ffp-contract=fast"] for name in ("logistic", "points", "newton", "hierarchy")},
    "keys": ["-fno-unroll-loops"],  # loops that wait for memory gain nothing and lose a fifth
}
NO_COMPILER = (
    "oddslip is compiled from source here, which needs a C compiler and Python's headers. Install "
    "them (Debian: apt install gcc python3-dev; macOS: xcode-select --install; Windows: Visual "
    "Studio Build Tools), or take a wheel: pip install --only-binary oddslip oddslip"
)


class BuildKernels(build_ext):
    """Every kernel becomes C once, and is compiled for any processor and, on x86-64, for AVX2."""

    def finalize_options(self):
        """Compile as many at a time as there are processors."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        """Translate to C, set the flags of this compiler, compile."""
        self.translate()
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        for extension in self.extensions:
            if kind == "msvc":
                extension.extra_compile_args = list(MSVC)
            else:
                extension.extra_compile_args = list(UNIX_CHECKED if CHECKED else UNIX)
                extension.extra_link_args = ["-fsanitize=address"] if CHECKED else []
            if kind == "unix":
                extension.libraries = ["m"]
                name = extension.name.rpartition(".")[2]
                extension.extra_compile_args += OF_ONE_KERNEL.get(name, [])
            if ".avx2." in extension.name:
                extension.extra_compile_args += FOR_AVX2[kind]
        command = getattr(self.compiler, "compiler_so", None)
        headers = Path(sysconfig.get_path("include"), "Python.h")
        if (command and shutil.which(command[0]) is None) or not headers.exists():
            raise PlatformError(NO_COMPILER)
        try:
            super().build_extensions()
        except (CompileError, PlatformError) as error:
            raise type(error)(f"{error}\n{NO_COMPILER}") from error

    def copy_extensions_to_source(self):
        """Put what was compiled beside its source, for editable installs."""
        if CHECKED:  # unchecked kernels of an earlier build would be loaded first
            shutil.rmtree(KERNELS / "avx2", ignore_errors=True)
        elif any(".avx2." in extension.name for extension in self.extensions):
            (KERNELS / "avx2").mkdir(exist_ok=True)
        super().copy_extensions_to_source()

    def translate(self):
        """Write each kernel as C. The AVX2 twin is a file that includes the same C."""
        from Cython.Build import cythonize

        plain = [extension for extension in self.extensions if ".avx2." not in extension.name]
        translated = cythonize(
            plain,
            build_dir=str(BUILD / "cython"),
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            nthreads=(os.cpu_count() or 0) if sys.platform == "linux" else 0,
        )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            twin = extension.name.replace(".avx2.", ".")
            extension.sources = sources[twin]
            if twin != extension.name:
                (c_file,) = map(Path, sources[twin])
                wrapper = BUILD / "cython" / "avx2" / c_file.name
                text = f'#include "{c_file.resolve().as_posix()}"\n'
                if not wrapper.exists() or wrapper.read_text() != text:
                    wrapper.parent.mkdir(parents=True, exist_ok=True)
                    wrapper.write_text(text)
                extension.sources = [str(wrapper)]
                extension.depends = [*extension.depends, str(c_file)]


def list_extensions():
    """All modules to compile."""
    x86 = sysconfig.get_platform().rpartition("-")[2] in ("x86_64", "amd64")
    headers = list(map(str, KERNELS.glob("*.pxd")))
    extensions = [Extension(SHARED, [str(BUILD / "cython" / "_shared.c")])]
    for source in sorted(map(str, KERNELS.glob("*.pyx"))):
        name = Path(source).stem
        extensions.append(Extension(f"{PACKAGE}.{name}", [source], depends=headers))
        if x86 and not CHECKED and name != "cpu":
            extensions.append(Extension(f"{PACKAGE}.avx2.{name}", [source], depends=headers))
    return extensions


setup(
    ext_modules=list_extensions(),
    cmdclass={"build_ext": BuildKernels},
    options={"build": {"build_base": str(BUILD)}},
)
