"""Bugs planted in a copy of the sources, one after the other, so that a test can be seen to find
them. What is built from the copy lies beside it."""

import contextlib
import pathlib
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "README.md", "actors", "conf", "examples", "include", "proto", "src",
          "strategies", "tests"]


class CannotPlant(Exception):
    """The text is not in the sources any more, or what it is replaced by does not compile."""


class Copy:
    """The sources in a folder, and a build of them; the next run goes on with both."""

    def __init__(self, scratch, jobs):
        self.source = scratch / "source"
        self.build = scratch / "build"
        self.jobs = str(jobs)
        self._copy_sources()
        if not (self.build / "CMakeCache.txt").exists():
            self._configure()

    def _copy_sources(self):
        """Only what differs, so that little is built again."""
        self.source.mkdir(parents=True, exist_ok=True)
        wanted = set()
        for entry in COPIED:
            start = ROOT / entry
            files = [start] if start.is_file() else sorted(
                p for p in start.rglob("*") if p.is_file())
            for file in files:
                there = self.source / file.relative_to(ROOT)
                wanted.add(there)
                if there.exists() and there.read_bytes() == file.read_bytes():
                    continue
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, there)
        for there in [p for p in self.source.rglob("*") if p.is_file()]:
            if there not in wanted:
                there.unlink()

    def _configure(self):
        command = ["cmake", "-S", self.source, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release"]
        if shutil.which("ninja"):
            command += ["-G", "Ninja"]
        if shutil.which("ccache"):
            command += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def make(self, targets):
        done = subprocess.run(
            ["cmake", "--build", self.build, "-j", self.jobs, "--target", *targets],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise CannotPlant("it does not compile:\n" + done.stdout[-3000:])

    @contextlib.contextmanager
    def planted(self, file, text, replacement):
        """While it lasts, `text`, found exactly once in `file`, is replaced."""
        path = self.source / file
        before = path.read_text()
        if before.count(text) != 1:
            raise CannotPlant(f"its text is {before.count(text)} times in {file}")
        path.write_text(before.replace(text, replacement))
        try:
            yield
        finally:
            path.write_text(before)


def try_each(copy, bugs, look, row):
    """Plants each, a Bug with `file`, `text` and `planted`, and prints a line that begins with
    row(bug). `look(bug)` says whether it was found as it should be, and a text about it. Whether
    there were bugs and all were found."""
    failed = 0
    for bug in bugs:
        start = time.monotonic()
        try:
            with copy.planted(bug.file, bug.text, bug.planted):
                found, text = look(bug)
        except CannotPlant as error:
            found, text = False, str(error)
        failed += not found
        word, seconds = "ok" if found else "FAIL", time.monotonic() - start
        print(f"{word:<5}{row(bug)}{text} [{seconds:.0f} s]", flush=True)
    print(f"{len(bugs)} bugs planted, {len(bugs) - failed} found")
    return bool(bugs) and failed == 0


def exit_code_of(main):
    """0 if main() says that all is well; 1 if not, or if nothing could be planted."""
    try:
        return 0 if main() else 1
    except CannotPlant as error:
        print(error)
        return 1
