#!/usr/bin/env bash
# The data is that of examples/mnist.
exec "$(dirname "$0")/../mnist/get_data.sh"
