"""Rows that tests below the rig prove."""
from trial import scenario


KEEPS = "every schedule keeps its promises under faults, and reaches its end"


@scenario(6, "several faults, as drawn, all schedules, in the simulator", minutes=True)
def simulated_pairs(trial):
    trial.by_cases("test_sim", KEEPS, "seeds that nobody has tried hold as well")


@scenario(12, "failover by Sentinel")
def failover(trial):
    trial.by_cases("test_e2e", "a primary that Sentinels watch dies while a job trains on it")


@scenario(13, "a Redis that evicts")
def evicting(trial):
    trial.by_cases("store_test", "a server that evicts is refused",
                   "a full server refuses the new record and keeps the old")


@scenario(14, "refusals by name: NOAUTH, NOPERM, READONLY, no database, silence")
def refusals(trial):
    trial.by_cases("store_test", "passwords and users of Redis", "a user with few rights",
                   "a replica is not written to", "a database that does not exist",
                   "a hung server is kTimeout after the attempts that were allowed")


@scenario(17, "messages doubled, late, out of order, in the simulator", minutes=True)
def simulated_messages(trial):
    trial.by_cases("test_sim", KEEPS)


@scenario(18, "another version")
def versions(trial):
    trial.by_cases("test_actors", "a master of another version is not asked again",
                   "another protocol and another model are refused with a reason")
    trial.by_cases("test_gate", "a peer of another protocol is told so, by whoever notices")


@scenario(19, "another model")
def models(trial):
    trial.by_cases("test_actors", "another protocol and another model are refused with a reason")
    trial.by_cases("test_trainer", "weights of another net are refused")


@scenario(20, "any flipped bit of a record")
def damaged_records(trial):
    trial.by_cases("store_test", "every damaged byte of a chunk is found",
                   "every damaged byte of a manifest or blob is found")


@scenario(21, "numbers that are not finite")
def not_finite(trial):
    trial.by_cases("test_actors", "a loss that is not finite is never merged")
    trial.by_cases("test_merger", "weights that overflow are taken back",
                   "a bad gradient leaves weights and history alone")


@scenario(22, "a worker that sends false gradients")
def poisoned(trial):
    trial.by_cases("test_merger", "a contribution of a larger norm is scaled down to the limit",
                   "a contribution far larger than those before is left out, and named as one")


@scenario(25, "hostile prototxt")
def hostile_nets(trial):
    trial.by_cases("core_test", "deep nesting is refused, not followed",
                   "bytes that are no text are refused",
                   "a shape is refused when negative, too long or too large",
                   "every layer takes an array without elements, or refuses it in a line")


@scenario(26, "hostile weights")
def hostile_weights(trial):
    trial.by_cases("data_tests", "bad weight and state files are named errors",
                   "HDF5: a model that announces gigabytes is refused, whatever its layout")
    trial.by_cases("test_formats", "whatever a file's bytes are, it is read or refused")


@scenario(27, "hostile data")
def hostile_data(trial):
    trial.by_cases("data_tests", "LMDB: a file cut at any page is an error, never a fault",
                   "LMDB: a file that shrinks while it is open is an error",
                   "LMDB: flipped bits give an error or wrong pixels, never a fault or a hang",
                   "LevelDB: a changed or cut file is an error, never a fault",
                   "images cut at any byte are errors",
                   "a datumfile cut at any byte is refused or ends at a record")


@scenario(34, "exceptions")
def exceptions(trial):
    trial.by_cases("test_main", "An exception on a thread ends the process with 70 and its name")
    trial.by_cases("test_actors", "an exception in what the master calls ends it with its text",
                   "a master's end is noticed before it begins, idle, merging, testing, "
                   "snapshotting")
