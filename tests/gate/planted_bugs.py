"""Takes away what protects a cluster on a network, one piece after the other, and sees each missed
by the test that proves it:

    tests/gate/planted_bugs.py --scratch FOLDER [--only NAME] [--jobs N]

FOLDER gets a copy of the sources and a build of them, which the next run goes on with. First all
tests named here are run with nothing planted, and must pass. Exit code 0: every bug made its test
fail. 1: one did not; or its text is not in the sources any more, or what it is replaced by does not
compile.
"""

import argparse
import dataclasses
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import planting

TEST_TIMEOUT_S = 300


@dataclasses.dataclass(frozen=True)
class Bug:
    proof: str     # what would hold no longer
    name: str
    file: str      # below the project's folder
    text: str      # found there exactly once
    planted: str   # what it is replaced by
    program: str   # the test's, a target
    test: str      # its name in Catch2


BYTES = "every byte, field and time"
HOSTILE = "hostile bytes harm nobody"
PORT = "one port, the gate's"
PROOF = "no entry without proof"
INSIDE = "an admitted peer's limits"
IDLE = "idle connections harm nobody"
SECRETS = "secrets are nowhere to be seen"
CHANGED = "changed bytes cut"
DEATH = "a master that died is gone"
SCHEDULES = "all that trains passes the gate"

BUGS = [
    Bug(BYTES, "proof of a preamble not looked at", "src/gate/preamble.cpp",
        "    verdict.refusal = Refusal::kWrongProof;", "    verdict.refusal = Refusal::kNone;",
        "test_gate", "every bit of a preamble counts"),
    Bug(BYTES, "version of the gate not looked at", "src/gate/preamble.cpp",
        "  if (said.version != wanted.version) {", "  if (false) {",
        "test_gate", "every field that is wrong has its refusal"),
    Bug(BYTES, "what comes with a preamble is dropped", "src/gate/admission.cpp",
        "  held_.erase(0, kPreambleBytes);", "  held_.clear();",
        "test_gate", "two sides with one token come together, in pieces of any size"),
    Bug(BYTES, "each byte gives new time", "src/gate/gate_link.cpp",
        "  if (admission_->step() != before) deadline_",
        "  static_cast<void>(before);\n  deadline_",
        "test_gate", "each step of an admission has its time, and no more"),
    Bug(HOSTILE, "messages of any length", "src/gate/basp_filter.cpp",
        "  if (header.payload_bytes > kMessageBytesMax) {", "  if (false) {",
        "test_gate", "a length is refused before anything of it has come"),
    Bug(HOSTILE, "strangers are not counted", "src/gate/gate_members.cpp",
        "    counts_.*count += 1;", "    static_cast<void>(count);",
        "test_gate", "hostile bytes at the port are counted, and a real peer comes in all the same"),
    Bug(PORT, "CAF listens as well", "actors/transport.cpp",
        "  // CAF knows published actors by a port; here",
        "  static_cast<void>(system.middleman().publish(whom, 0, \"127.0.0.1\"));\n"
        "  // CAF knows published actors by a port; here",
        "test_e2e", "workers with the token train, others are told with 77, and nobody sees "
        "it"),
    Bug(PROOF, "any key is a key", "src/gate/preamble.cpp",
        "    return equal_in_constant_time(each.id, said.key_id);", "    return !each.id.empty();",
        "test_gate", "another token is refused before TLS is spoken"),
    Bug(PROOF, "revoked certificates pass", "src/gate/tls_context.cpp",
        "  if (lists > 0) ::X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);",
        "  static_cast<void>(lists);",
        "test_gate", "a revoked certificate is refused by who has the new list, others stay"),
    Bug(PROOF, "certificates are for ever", "src/gate/tls_context.cpp",
        "  if (lists == blocks->size()) return unfit",
        "  ::X509_STORE_set_flags(store, X509_V_FLAG_NO_CHECK_TIME);\n"
        "  if (lists == blocks->size()) return unfit",
        "test_gate", "a certificate whose time is over is refused by its owner and by its peer"),
    Bug(PROOF, "a worker's certificate passes for a master's", "src/gate/admission.cpp",
        "    if (!shown.is_master) {", "    if (false) {",
        "test_gate", "a certificate that TLS takes on both sides still has one role"),
    Bug(PROOF, "a master's certificate passes for a worker's", "src/gate/admission.cpp",
        "GateMode::kCertificates && !shown.is_worker) {", "GateMode::kCertificates && false) {",
        "test_gate", "a certificate that TLS takes on both sides still has one role"),
    Bug(PROOF, "a master's certificate for any name", "src/gate/admission.cpp",
        "    if (!shown.name_fault.empty()) {", "    if (false) {",
        "test_gate", "a master's certificate is for the names that it is called by"),
    Bug(INSIDE, "requests pass", "src/gate/basp_filter.cpp",
        "  if (header.data != kAsynchronous) return", "  if (false) return",
        "test_gate", "every field of a message that is wrong cuts it"),
    Bug(INSIDE, "messages of any type pass", "src/gate/basp_filter.cpp",
        "      type->starts_with(kTypeStart) &&\n      std::find(",
        "      type->starts_with(kTypeStart) ||\n      std::find(",
        "test_gate", "what a peer may not say cuts it"),
    Bug(INSIDE, "a peer speaks for any node", "src/gate/basp_filter.cpp",
        "payload.substr(0, kNodeBytes) == peer_node_ && is_node(own_node_)", "is_node(own_node_)",
        "test_gate", "a peer speaks for its own node, and to ours"),
    Bug(IDLE, "the oldest stranger keeps its place", "src/gate/gate_members.cpp",
        "    members_.erase(found);\n    return;\n  }\n}\n\nvoid Gate::Loop::make_room",
        "    return;\n  }\n}\n\nvoid Gate::Loop::make_room",
        "test_gate", "idle connections without end do not keep a real peer out"),
    Bug(SECRETS, "a token is logged", "src/gate/token_file.cpp",
        "    tokens.emplace_back(line);",
        "    tokens.emplace_back(line);\n    fmt::print(stderr, \"{}\\n\", line);",
        "test_e2e", "workers with the token train, others are told with 77, and nobody sees "
        "it"),
    Bug(CHANGED, "bytes that do not open are passed over", "src/gate/tls_channel.cpp",
        "    if (why != SSL_ERROR_WANT_READ && !over_) return fail(out);\n", "",
        "test_gate", "bytes that are changed, sent again or left out under way cut the connection"),
    Bug(DEATH, "a master actor's death passes for its end", "actors/actor_end.cpp",
        "  if (state_->has_spoken) return state_->word;", "  return state_->word;",
        "test_actors", "a master that is made to exit while it trains is gone; another goes on "
        "from there"),
    Bug(SCHEDULES, "a kind of message is forgotten", "actors/transport.cpp",
        "wire_name<TrainedMessage>(), ", "",
        "test_actors", "workers may be there before the master, and come late"),
]


def run(copy, program, test):
    """Whether it passed, and how it ended."""
    command = [copy.build / "tests" / program, test.replace(",", "\\,")]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, errors="replace", timeout=TEST_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False, f"not over after {TEST_TIMEOUT_S} s"
    if "No test cases matched" in done.stdout:
        raise planting.CannotPlant(f"{program} has no test '{test}'")
    return done.returncode == 0, f"exit code {done.returncode}"


def look(copy, bug):
    """Whether its test missed what was taken away, and how that ended."""
    copy.make([bug.program])
    passed, end = run(copy, bug.program, bug.test)
    return not passed, end


def all_pass(copy, bugs):
    tests = sorted({(bug.program, bug.test) for bug in bugs})
    copy.make(sorted({program for program, _ in tests}))
    ends = {each: run(copy, *each) for each in tests}
    for (program, test), (passed, end) in ends.items():
        if not passed:
            print(f"nothing planted, and {program} '{test}' fails: {end}")
    return all(passed for passed, _ in ends.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="bugs whose names or proofs contain this")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    copy = planting.Copy(options.scratch, options.jobs)
    chosen = [bug for bug in BUGS
              if options.only is None or options.only in bug.name or options.only in bug.proof]
    if not all_pass(copy, chosen):
        return False
    print(f"{'':5}{'proof':<33}{'planted bug':<46}its test")
    return planting.try_each(
        copy, chosen, lambda bug: look(copy, bug),
        lambda bug: f"{bug.proof:<33}{bug.name:<46}{bug.program} '{bug.test}': ")


if __name__ == "__main__":
    sys.exit(planting.exit_code_of(main))
