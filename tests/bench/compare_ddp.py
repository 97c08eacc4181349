#!/usr/bin/env python3
"""Two synchronous workers of one thread each beside PyTorch DDP over gloo, in turns in one run.

    tests/bench/compare_ddp.py [--build build] [--python PYTHON] [--rounds 3]
                               [--nets lenet,cifar10_quick,cifar10_full,googlenet,caffenet]
                               [--kinds "full delta,gradient only,replicated,async"]
                               [--no-shared-memory] [--attempts 3]

A net's name may be followed by a batch, as in caffenet:32. Each turn measures, for every net: one
process of one thread here, two such at the same time that exchange nothing, two workers of `speedo
run` for each kind of update, which exchange through memory that they share, or through Redis if
told so, and with PyTorch one process and two that exchange by DDP, in the better of its memory
formats and SGD forms, which is found by trying. All take their data from memory, in batches of the
same size. Rates here come from two runs of different length, PyTorch's from the steps after the
first ones: starting and stopping do not count. PyTorch is the one that --python finds (README.md);
where it finds none, its columns are left out. Each measurement waits a while for others to leave
the processors alone; one during which they kept more than 0.1 of them busy is tried again, up to
--attempts times, and the quietest is kept.

Prints two tables of medians over the turns (so far, if it is interrupted), ratios as medians of
each turn's: images a second, and what a round takes beyond one step, beside seven plain copies of
an array of the net's size. The last line is one JSON object of all of it.
"""
import argparse
import ctypes
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import bench_nets
import round_cost

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {
    "full delta": ["--strategy", "sync"],
    "gradient only": ["--strategy", "sync", "--gradient-only"],
    "replicated": ["--strategy", "sync", "--gradient-only", "--replicated"],
    "async": ["--strategy", "async"],
}
TRIAL_STEPS = 3
QUIET_CORES, PATIENCE_SECONDS = 0.1, 20
COPIES = 7
COPY_SECONDS = 0.5


class Net:
    """A net with a batch, its files, and how to measure it."""

    def __init__(self, word, folder):
        name, _, batch = word.partition(":")
        if name not in round_cost.NETS or not (batch.isdecimal() and int(batch) or batch == ""):
            bench_nets.fail(f"no net '{word}'; there are {', '.join(round_cost.NETS)}, and "
                            "NET:BATCH for another batch")
        _, shape, self.short, self.long = round_cost.NETS[name]
        self.batch = int(batch) if batch else shape[0]
        self.name = word
        place = pathlib.Path(folder) / word.replace(":", "_")
        place.mkdir()
        self.solver = round_cost.write_solver(name, str(place), self.batch)
        self.torch_text = place / "torch.prototxt"
        self.torch_text.write_text(bench_nets.timing_prototxt(name, self.batch))
        self.torch_flags = []

    def rate(self, seconds_of):
        """Steps a second by runs of two lengths; `seconds_of(steps)` is a list, one a process."""
        times = [(long - short) / (self.long - self.short)
                 for long, short in zip(seconds_of(self.long), seconds_of(self.short))]
        if min(times) <= 0:
            bench_nets.fail(f"{self.name}: the longer run took less time: the machine is too busy "
                            "to measure on")
        return sum(1 / each for each in times)

    def processes_here(self, build, count):
        """Images a second of processes that train at the same time, each by itself."""
        def seconds(steps):
            command = [bench_nets.built(build, "bin/speedo"), "train", "--solver", self.solver,
                       "--threads", "1", "--max-iter", str(steps), "--test-interval", "0", "--json"]
            started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL,
                                        preexec_fn=bench_nets.end_with_parent)
                       for _ in range(count)]
            said = [process.communicate()[0] for process in started]
            if any(process.returncode != 0 for process in started):
                bench_nets.fail(f"'{' '.join(command)}' failed")
            return [json.loads(text)["seconds"] for text in said]
        return self.batch * self.rate(seconds)

    def workers_here(self, build, kind, flags):
        """Images a second of two workers that exchange. A round of synchronous ones is a merge."""
        def seconds(steps):
            merges = steps * (2 if kind == "async" else 1)
            return [bench_nets.run_json(
                [bench_nets.built(build, "bin/speedo"), "run", "--solver", self.solver, "--threads",
                 "2", "--workers", "2", "--max-iter", merges, "--test-interval", "0", "--json",
                 *KINDS[kind], *flags])["seconds"]]
        return 2 * self.batch * self.rate(seconds)

    def torch_step(self, python, processes, steps, *flags):
        return bench_nets.run_json([python, HERE / "ddp_step.py", self.torch_text, "--processes",
                                    processes, "--steps", steps, *flags])["step_ms"]

    def choose_torch_flags(self, python, can_fuse):
        formats = [["--format", "nchw"], ["--format", "channels_last"]]
        forms = [[], ["--fused"]] if can_fuse else [[]]
        trials = [a + b for a, b in itertools.product(formats, forms)]
        self.torch_flags = min(
            trials, key=lambda flags: self.torch_step(python, 1, TRIAL_STEPS, *flags))

    def torch_rate(self, python, processes):
        milliseconds = self.torch_step(python, processes, self.long - self.short, "--warm-up",
                                       self.short, *self.torch_flags)
        return 1e3 * processes * self.batch / milliseconds

    def copies_ms(self, build):
        """Milliseconds of seven copies of an array as large as the net's weights."""
        model = self.solver.replace("_solver.prototxt", ".prototxt")
        net = bench_nets.run_json([bench_nets.built(build, "bin/speedo"), "net", "--model", model,
                                   "--json"])
        size = 4 * net["parameter_count"]
        source, target = (ctypes.create_string_buffer(size) for _ in range(2))
        ctypes.memset(source, 1, size)
        ctypes.memset(target, 2, size)
        times, end = [], time.perf_counter() + COPY_SECONDS
        while time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(COPIES):
                ctypes.memmove(target, source, size)
            times.append(1e3 * (time.perf_counter() - start))
        return bench_nets.median(times)


def find_torch(python):
    """PyTorch's version and whether its SGD has a fused form here, or None without PyTorch."""
    script = ("import compare_torch, json, torch; print(json.dumps("
              "[torch.__version__, compare_torch.has_fused_sgd()]))")
    done = subprocess.run([python, "-c", script], cwd=HERE, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def measures(net, options, torch):
    """(name, function that measures images a second) of all that is compared."""
    build, python = options.build, options.python
    flags = ["--no-shared-memory"] if options.no_shared_memory else []
    every = [("one", lambda: net.processes_here(build, 1)),
             ("apart", lambda: net.processes_here(build, 2))]
    every += [(kind, lambda kind=kind: net.workers_here(build, kind, flags))
              for kind in options.kinds]
    if torch:
        every += [("torch", lambda: net.torch_rate(python, 1)),
                  ("ddp", lambda: net.torch_rate(python, 2))]
    return every + [("copies", lambda: net.copies_ms(build))]


def await_quiet():
    for _ in range(PATIENCE_SECONDS):
        processors = bench_nets.Processors()
        time.sleep(1)
        if processors.of_others() <= QUIET_CORES:
            break


def quietest(measure, attempts):
    """What it measures, and how many processors were busy with others meanwhile."""
    tried = []
    for _ in range(attempts):
        await_quiet()
        processors = bench_nets.Processors()
        value = measure()
        tried.append((processors.of_others(), value))
        if tried[-1][0] <= QUIET_CORES:
            break
    cores, value = min(tried)
    return value, cores


def turn(net, options, torch):
    """One turn's figures of a net by name: images a second, the milliseconds of copies, and the
    most processors that were busy with others during one of these."""
    figures, others = {}, 0.0
    for name, measure in measures(net, options, torch):
        figures[name], cores = quietest(measure, options.attempts)
        others = max(others, cores)
    return figures | {"others": others}


class Results:
    """The turns of a net, and what is told of them."""

    def __init__(self, net, turns):
        self.net, self.turns = net, turns

    def median(self, of_turn):
        return bench_nets.median(of_turn(figures) for figures in self.turns)

    def rate(self, name):
        return self.median(lambda figures: figures[name])

    def ratio(self, name, other, factor=1.0):
        return self.median(lambda figures: figures[name] / (factor * figures[other]))

    def beyond(self, kind, other):
        """Milliseconds by which a round is longer than a step of `other`, of two processes."""
        images = 2e3 * self.net.batch
        factor = 2 if other in ("one", "torch") else 1
        return self.median(lambda figures: images / figures[kind] -
                           images / (factor * figures[other]))


def rate_columns(kinds, torch):
    """(title, function of Results) of the first table."""
    columns = [("one process", lambda r: f"{r.rate('one'):.1f}"),
               ("two apart", lambda r: f"{r.rate('apart'):.1f}")]
    columns += [(f"two, {k}", lambda r, k=k: f"{r.rate(k):.1f}") for k in kinds]
    if torch:
        columns += [("PyTorch, one", lambda r: f"{r.rate('torch'):.1f}"),
                    ("DDP, two", lambda r: f"{r.rate('ddp'):.1f}")]
    columns += [(f"efficiency, {k}", lambda r, k=k: f"{r.ratio(k, 'one', 2):.2f}") for k in kinds]
    if torch:
        columns += [("of DDP", lambda r: f"{r.ratio('ddp', 'torch', 2):.2f}")]
        columns += [(f"{k} / DDP", lambda r, k=k: f"**{r.ratio(k, 'ddp'):.2f}**") for k in kinds]
    columns += [(f"{k} / apart", lambda r, k=k: f"**{r.ratio(k, 'apart'):.2f}**") for k in kinds]
    return [*columns, ("others' cores", lambda r: f"{r.rate('others'):.1f}")]


def beyond_columns(kinds, torch):
    """(title, function of Results) of the second table."""
    columns = [("7 copies", lambda r: f"{r.rate('copies'):.2f}")]
    for k in [each for each in kinds if each != "async"]:
        columns += [
            (f"{k}, beyond one process", lambda r, k=k: f"{r.beyond(k, 'one'):.2f}"),
            (f"{k}, beyond two apart", lambda r, k=k: f"{r.beyond(k, 'apart'):.2f}"),
            ("of the copies, one / apart",
             lambda r, k=k: f"{r.beyond(k, 'one') / r.rate('copies'):.2f} / "
                            f"{r.beyond(k, 'apart') / r.rate('copies'):.2f}")]
    if torch:
        columns += [("DDP, beyond one process", lambda r: f"{r.beyond('ddp', 'torch'):.2f}")]
    return columns


def table(results, columns):
    lines = [["net", "batch"] + [title for title, _ in columns]]
    lines += [[r.net.name.split(":")[0], str(r.net.batch)] + [tell(r) for _, tell in columns]
              for r in results]
    text = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0]), *text[1:]])


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--nets", default="lenet,cifar10_quick,cifar10_full,googlenet,caffenet")
    parser.add_argument("--kinds", default="full delta,gradient only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--no-shared-memory", action="store_true", help="workers use Redis")
    options = parser.parse_args()
    options.kinds = [kind.strip() for kind in options.kinds.split(",")]
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        bench_nets.fail(f"no kind '{unknown[0]}'; there are {', '.join(KINDS)}")
    if options.rounds < 1 or options.attempts < 1:
        bench_nets.fail("--rounds and --attempts take a number from 1")
    return options


def take_turns(nets, options, torch):
    """Lists of turns by net, of nets that had one; ends early if it is interrupted."""
    turns = {}
    try:
        for net in nets if torch else []:
            net.choose_torch_flags(options.python, torch[1])
            print(f"{net.name}: PyTorch with {' '.join(net.torch_flags)}", file=sys.stderr,
                  flush=True)
        for _, net in itertools.product(range(options.rounds), nets):
            figures = turn(net, options, torch)
            turns.setdefault(net, []).append(figures)
            rates = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
            print(f"{net.name}: {rates}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    return turns


def main():
    options = read_options()
    bench_nets.built(options.build, "bin/speedo")
    torch = find_torch(options.python)
    if not torch:
        print(f"{options.python} finds no PyTorch: DDP is left out; --python names one that does\n")
    before = bench_nets.load_now()
    with tempfile.TemporaryDirectory() as folder:
        nets = [Net(word, folder) for word in options.nets.split(",")]
        turns = take_turns(nets, options, torch)
    if not turns:
        bench_nets.fail("interrupted before the first turn's end")
    results = [Results(net, turns[net]) for net in turns]
    way = "Redis" if options.no_shared_memory else "shared memory"
    print(f"{before} before, {bench_nets.load_now()} after, at most {len(results[0].turns)} turns, "
          f"medians, through {way}" + (f", PyTorch {torch[0]}" if torch else ""))
    print("\nImages a second:\n")
    print(table(results, rate_columns(options.kinds, torch)))
    print("\nMilliseconds of a round that no computing hides:\n")
    print(table(results, beyond_columns(options.kinds, torch)) + "\n")
    if torch:
        chosen = [f"{net.name} {' '.join(net.torch_flags).replace('--', '')}" for net in turns]
        print(f"PyTorch with: {'; '.join(chosen)}\n")
    print(json.dumps({"torch": torch[0] if torch else None, "way": way,
                      "turns": {net.name: turns[net] for net in turns}}))


if __name__ == "__main__":
    main()
