#!/usr/bin/env bash
# The data is that of examples/digits.
exec "$(dirname "$0")/../digits/get_data.sh"
