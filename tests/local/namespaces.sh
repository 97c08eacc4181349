# shellcheck shell=bash
# Machines for a test: network namespaces with addresses of their own, joined by a bridge. Source this file after
# setting `id`, a prefix that no other test has, `names`, those of the machines, and `subnet`, such as 10.77.0.
# shellcheck disable=SC2154 # They are set there.

# processes NAME: those in that namespace.
processes() { ip netns pids "$id-$1" 2>/dev/null || true; }

# workers_on NAME: the workers among them.
workers_on() {
  local pid
  for pid in $(processes "$1"); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = speedo-worker ]; then echo "$pid"; fi
  done
}
works_on() { [ -n "$(workers_on "$1")" ]; }

make_network() {
  local i
  ip netns add "$id-hub"
  ip -n "$id-hub" link add bridge type bridge
  ip -n "$id-hub" link set bridge up
  for i in "${!names[@]}"; do
    ip netns add "$id-${names[i]}"
    ip -n "$id-hub" link add "port$i" type veth peer name eth0 netns "$id-${names[i]}"
    ip -n "$id-hub" link set "port$i" master bridge up
    ip -n "$id-${names[i]}" address add "$subnet.$((i + 1))/24" dev eth0
    ip -n "$id-${names[i]}" link set eth0 up
    ip -n "$id-${names[i]}" link set lo up
  done
}

# Ends all that runs in them as well.
remove_network() {
  local name
  for name in "${names[@]}"; do
    processes "$name" | xargs --no-run-if-empty kill -KILL 2>/dev/null || true
    ip netns delete "$id-$name" 2>/dev/null || true
  done
  ip netns delete "$id-hub" 2>/dev/null || true
}

# remove_folder FOLDER: although what was killed a moment ago may still write to it.
remove_folder() {
  local i
  for ((i = 0; i < 50; ++i)); do
    if rm -rf "$1" 2>/dev/null; then return; fi
    sleep 0.1
  done
  rm -rf "$1"
}

# eventually SECONDS WHAT COMMAND...: until the command succeeds. `fail` is the test's own.
eventually() {
  local seconds=$1 what=$2 i
  shift 2
  for ((i = 0; i < 10 * seconds; ++i)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "not within $seconds s: $what"
}

# write_noise FILE PREFIX ITERATIONS: a solver that needs no data: noise in, labels 0; the accuracy goes to 1.
write_noise() {
  cat >"$1" <<END
max_iter: $3 base_lr: 0.05 lr_policy: "fixed" random_seed: 3 display: 10
test_iter: 2 test_interval: 500 snapshot_prefix: "$2"
net_param { name: "noise"
  layer { name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param { shape { dim: 8 dim: 12 } shape { dim: 8 }
                             data_filler { type: "gaussian" std: 1 }
                             data_filler { type: "constant" value: 0 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
          include { phase: TEST } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
END
}
