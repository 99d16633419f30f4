#!/usr/bin/env bash
# Runs the official conformance suite against our client: run.sh NODE_MODULES_DIR. Node is INTEROP_NODE, else the one in that
# folder, else the one on PATH. It fails on any deviation from expected-failures.yml, and when a scenario of must-pass.txt
# was not run or did not pass.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
modules=$(cd "${1:?usage: run.sh NODE_MODULES_DIR}" && pwd)
node=${INTEROP_NODE:-}
for candidate in "$modules/.bin/node" "$(command -v node || true)"; do
	if [ -z "$node" ] && [ -x "$candidate" ]; then node=$candidate; fi
done
[ -n "$node" ] || { echo "no Node found" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$here" && go build -o "$work/driver" .)
code=0
(cd "$work" && "$node" "$modules/@modelcontextprotocol/conformance/dist/index.js" client --command "$work/driver" --suite all \
	--timeout 60000 --expected-failures "$here/expected-failures.yml") >"$work/log" 2>&1 || code=$?
grep -E '^(✓|✗|Total)' "$work/log" || true
while read -r scenario; do
	grep -q "^✓ $scenario: [1-9]" "$work/log" || { echo "did not pass: $scenario" >&2; code=1; }
done <"$here/must-pass.txt"
if [ "$code" -ne 0 ]; then
	tail -n 400 "$work/log" >&2
	exit 1
fi
echo "conformance: as expected"
